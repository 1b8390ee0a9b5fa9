"""``aloof export``: a model as one file that scores without aloof and torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from aloof.cli.options import Json, Model
from aloof.export import check_path
from aloof.export import export as write
from aloof.models.loading import open_model

__all__ = ["export"]


def export(
    model: Model,
    onnx: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The ONNX file to write; its name ends in .onnx."),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: Json = False,
) -> None:
    """Write a model as one ONNX file that scores without aloof and without torch.

    The file holds everything from the values of a row to the decision: encoding, networks,
    trees, score, p-value and threshold. Any ONNX Runtime runs it: Python, C#, Java,
    JavaScript, C++.

    Example: **aloof export model --onnx model.onnx**, then, where only NumPy and ONNX Runtime
    are installed: **aloof-lite score model.onnx new.csv --out scores.csv**

    For programs, the file takes one input for each column of the table: numbers as doubles
    (NaN where there is none), times as seconds since 1970, all else as text (empty where
    there is none). It gives anomaly_score, p_value and is_anomaly for each row. **aloof-lite
    info model.onnx** lists them.

    Before the file is put in place, it is tried on made-up rows, among them missing, unknown
    and far-off values: but for what rounding explains, scores must agree with the model's to
    1e-5, and decisions must be the same.

    A new threshold needs a new export. Models with columns of text, and detectors with
    networks of your own, cannot be exported.
    """
    check_path(onnx, force=force)
    done = write(open_model(model, device="cpu"), onnx, force=force)
    if as_json:
        told = {
            "path": str(done.path),
            "bytes": done.n_bytes,
            "rows_tried": done.n_tried,
            "largest_relative_difference": done.off,
            "inputs": done.inputs,
            "outputs": list(done.outputs),
        }
        typer.echo(json.dumps(told))
        return
    typer.echo(
        f"Wrote {done.path} ({done.n_bytes / 1e6:.1f} MB). On {done.n_tried:,} made-up rows "
        f"its scores are the model's to {max(done.off, 1e-9):.0e}."
    )
    typer.echo(f"Score with it: aloof-lite score {done.path} DATA --out scores.csv")
