"""Photographs of parts: seconds to fit and to score them, memory, and size of the model.

    python benchmarks/images.py [--normal 200] [--anomalies 9] [--side 256] [--out FILE]

Draws images of a surface, good ones and some with defects, into folders of PNG files, and fits
and scores them in a fresh process by the command line's own functions, with its defaults: whole
images and patches. Files are read each time, so that counts. Seconds are those of a clock: run
it on a machine that has nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from PIL import Image

import aloof
from aloof.bench.provenance import provenance
from aloof.bench.vision.problems import make_problem

SURFACE = "weave"


def write(images: Any, folder: Path) -> Path:
    folder.mkdir()
    for place, image in enumerate(images):
        Image.fromarray(image.transpose(1, 2, 0)).save(folder / f"{place:04}.png")
    return folder


def memory() -> float:
    """Return the largest size that this process had so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(folder: Path, view: str, tell: Any) -> None:
    import torch

    warnings.simplefilter("ignore")
    before, started = memory(), time.perf_counter()
    parts = view == "patches"
    model = aloof.fit(normal=folder / "good", anomaly=folder / "bad", patches=parts, seed=0)
    seconds = time.perf_counter() - started
    model.save(folder / view)
    started = time.perf_counter()
    scores = model.score(folder / "new")
    rate = len(scores.anomaly_score) / (time.perf_counter() - started)
    size = sum(path.stat().st_size for path in (folder / view).rglob("*") if path.is_file())
    tell.send(
        {
            "view": view,
            "method": model.detector.method,
            "threads": torch.get_num_threads(),
            "fit_seconds": round(seconds, 1),
            "images_per_second": round(rate, 1),
            "fit_megabytes": round(memory() - before),
            "model_megabytes": round(size / 2**20, 1),
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--normal", type=int, default=200)
    parser.add_argument("--anomalies", type=int, default=9)
    parser.add_argument("--side", type=int, default=256)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    problem = make_problem(
        SURFACE,
        0,
        normal=given.normal,
        labelled=given.anomalies,
        test=40,
        side=given.side,
        root=None,
    )
    found: dict[str, Any] = {
        "normal": given.normal,
        "anomalies": given.anomalies,
        "side": given.side,
        "scored": len(problem.test),
        "processors": os.cpu_count(),
        "load_average_before": round(os.getloadavg()[0], 2),
        **provenance(),
    }
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(problem.normal, folder / "good")
        write(problem.labelled, folder / "bad")
        write(problem.test, folder / "new")
        found["runs"] = []
        for view in ("patches", "whole"):
            heard, tell = context.Pipe(duplex=False)
            process = context.Process(target=measured, args=(folder, view, tell))
            process.start()
            process.join()
            if process.exitcode:
                raise SystemExit(process.exitcode)
            found["runs"].append(heard.recv())
    text = json.dumps(found, indent=1)
    if given.out is not None:
        given.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
