"""``aloof score``: everything in a table or among images with its anomaly score."""

from __future__ import annotations

import json
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from aloof.cli.group import fail, tell_skipped
from aloof.cli.harmless import harmless_while_running, known_harmless
from aloof.cli.options import (
    READING,
    Data,
    Device,
    Json,
    MissingColumns,
    Model,
    Store,
    also,
    called,
    given,
    passed,
)
from aloof.cli.progress import progress_bar
from aloof.exceptions import DriftWarning, TableWarning
from aloof.models import Model as AnyModel
from aloof.models.loading import open_model
from aloof.models.table import TableModel, check_output
from aloof.models.table.drift import drift_lines
from aloof.models.table.folders import is_folder
from aloof.models.table.streaming import is_unfinished
from aloof.models.table.words import short
from aloof.phrases import count

__all__ = ["score"]

_RULES = ("ignore_rules", "store")
_TOLD = 5  # files of a folder whose remarks are shown


@also(READING)
def score(
    context: typer.Context,
    model: Model,
    data: Data,
    out: Annotated[
        str,
        typer.Option(
            metavar="SCORES",
            help="The file to write: .csv, .tsv or .jsonl (also with .gz), .xlsx, .parquet or "
            ".arrow; - for CSV on standard output. A folder (ending in /): a file for each of "
            "DATA. With --follow: a file of JSON lines (.jsonl), or -.",
        ),
    ],
    reasons: Annotated[
        int, typer.Option(min=0, help="Number of reasons to give for each flagged row.")
    ] = 3,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Copy a column to the output, besides the id. Repeatable."
        ),
    ] = None,
    keep_all: Annotated[
        bool,
        typer.Option(
            "--keep-all",
            help="Copy all columns of the data. Images: folder, size and brightness.",
        ),
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Flag this many rows, the highest scores of this file, whatever the "
            "threshold says. On ties, earlier rows come first.",
        ),
    ] = None,
    flagged_only: Annotated[
        bool, typer.Option("--flagged-only", help="Write only the flagged rows.")
    ] = False,
    sort: Annotated[
        bool,
        typer.Option(
            "--sort", help="Write the highest scores first. Needs memory for the rows written."
        ),
    ] = False,
    missing_columns: MissingColumns = "refuse",
    ignore_rules: Annotated[
        bool,
        typer.Option(
            "--ignore-rules", help="Also flag rows that reviewers know to be harmless."
        ),
    ] = False,
    store: Store = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run, if there is one.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace an existing file, and discard an interrupted run."
        ),
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Score rows as they are written to DATA, until Ctrl-C or SIGTERM: CSV with a "
            "header, or JSON lines (--format jsonl; detected by default). The file may be "
            "renamed and begun anew, or not exist yet. - reads standard input to its end.",
        ),
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --follow: remember in this file how far it got. Started again, even "
            "after a kill or a power cut, no row is scored twice and none is left out.",
        ),
    ] = None,
    drift_every: Annotated[
        int,
        typer.Option(
            min=100,
            metavar="ROWS",
            help="With --follow: compare this many rows at a time with the training rows.",
        ),
    ] = 2000,
    ray: Annotated[
        bool,
        typer.Option(
            "--ray",
            help="Score the files of a folder into a folder on a Ray cluster: that of "
            "RAY_ADDRESS, or this machine. The files must be reachable from all machines.",
        ),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --ray: how many, each with one processor. Default: all there are."
        ),
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Score every row of a table, however large, and say why rows are flagged.

    Writes the id, anomaly_score (higher is worse), p_value, is_anomaly and the reasons in
    words, in the order of the rows. If the table does not look like the training table,
    warnings name the columns. Rows that reviewers know to be harmless (**aloof review**) are
    not flagged, and suppressed_by says by which rule.

    The file appears once everything is done. If the run is killed, run the same command with
    **--resume**: it picks up where it stopped and writes the same bytes.

    Example: **aloof score model new.parquet --out scores.csv**

    The 20 worst rows, with all their columns: **aloof score model new.csv --top 20
    --flagged-only --sort --keep-all --out worst.xlsx**

    An image model scores a folder, a zip archive or a file: **aloof score model new-images/
    --top 20 --flagged-only --sort --out worst.csv**. Files that cannot be used are named and
    skipped.

    The file need not be laid out like the training file: delimiter, encoding and header line
    are detected again. Numbers and dates are read as in training.

    A folder into a folder, a file for each file: **aloof score model new/ --out scores/**.
    Run it again with **--resume** after a kill, or when files were added: finished files
    are kept. On many machines: **--ray**. Data and scores may be elsewhere: **s3://bucket/new/**.

    In a pipe: **zcat new.csv.gz | aloof score model - --out - | head**

    Events as they come: **aloof score model events.csv --follow --state events.state --out
    scores.jsonl**. Writes a line of JSON for each row, and warns on standard error when rows
    begin to look unlike the training rows, and when that is over.
    """
    started = time.monotonic()
    if follow:
        followed = open_model(model, device=device)
        rules = {} if ignore_rules else harmless_while_running(followed, model, store)
        _follow(context, followed, data, as_json, keep=keep or (), **rules)
        return
    if as_json and out == "-":
        fail("Scores and JSON cannot both go to standard output. Name a file with --out.")
    to_folder = ray or (is_folder(out) and not Path(data).is_file())
    if not to_folder:
        check_output(out, force=force)
    fitted = open_model(model, device=device)
    if to_folder and hasattr(fitted, "score_folder"):
        rules = {} if ignore_rules else known_harmless(fitted, model, store)
        _score_folder(context, fitted, data, started, keep=keep or (), **rules)
        return
    check_output(out, force=force)
    if ray:
        fail(f"--ray cannot be used with {fitted.kind}.")
    if hasattr(fitted, "score_folder") and workers is not None:
        fail("--workers needs --ray.")
    if hasattr(fitted, "follow") and {"state", "drift_every"} & {*given(context)}:
        fail("--state and --drift-every need --follow.")
    try:
        rules = {} if ignore_rules else known_harmless(fitted, model, store)
        done = called(
            context,
            fitted,
            fitted.score_file,
            data,
            own=_RULES if isinstance(fitted, TableModel) else (),
            keep=keep or (),
            **rules,
        )
    except KeyboardInterrupt:
        if is_unfinished(out):
            typer.echo("Run the same command with --resume to continue.", err=True)
        raise
    tell_skipped(done.skipped)
    seconds = time.monotonic() - started
    if as_json:
        found = {
            "out": out,
            f"n_{fitted.things}": done.n_rows,
            "n_anomalies": done.n_anomalies,
            "n_suppressed": done.n_suppressed,
            "n_resumed": done.n_resumed,
            "skipped": [{"file": name, "reason": why} for name, why in done.skipped],
            "threshold": fitted.threshold.as_dict() if top is None else {"top": top},
            "drift": [asdict(each) for each in done.drift],
            "remark": done.remark,
            "seconds": round(seconds, 3),
        }
        typer.echo(json.dumps(found))
    elif out != "-":
        skipped = f", {count(len(done.skipped), 'file')} skipped" if done.skipped else ""
        rule, things = str(fitted.threshold), fitted.things
        if top is not None:
            rule = f"the {count(done.n_anomalies, 'highest score')}"
        elif expected := fitted.threshold.expectation(done.n_rows, things=things):
            rule = f"{rule}: {expected}"
        typer.echo(
            f"Scored {count(done.n_rows, things.removesuffix('s'))} in {seconds:.1f} s: "
            f"{done.n_anomalies:,} flagged ({rule}){skipped}. The scores are in {out}."
        )
        _tell_suppressed(done.n_suppressed, things.removesuffix("s"))
        if done.drift:
            n = count(len(done.drift), "difference")
            named = dict.fromkeys(each.column for each in done.drift if each.column)
            columns = f" ({short(', '.join(named), 100)})" if named else ""
            typer.echo(f"The {things} do not look like the training {things}: {n}{columns}.")
    if done.remark and not as_json:
        typer.echo(f"Nothing is flagged. {done.remark}", err=out == "-")


def _tell_suppressed(n: int, one: str) -> None:
    if n:
        typer.echo(
            f"{count(n, one)} known to be harmless by reviewers' rules would be flagged, too; "
            "see the column suppressed_by, or --ignore-rules."
        )


def _score_folder(
    context: typer.Context, fitted: Any, data: str, started: float, **more: Any
) -> None:
    """Score the files of a folder into another, and say what there is to say about all."""
    given_out, as_json = context.params["out"], context.params["as_json"]
    pool = None
    if context.params["ray"]:
        from aloof.ray import folder_pool

        pool = folder_pool(context.params["workers"])
    elif context.params["workers"] is not None:
        fail("--workers needs --ray.")
    with progress_bar("Scoring files") as progress:
        more |= {"pool": pool, "progress": progress}
        reading, options = passed(
            context,
            "a folder to write to",
            fitted.read,
            fitted.score_folder,
            own={"ray", "workers", *_RULES},
            **more,
        )
        done = fitted.score_folder(fitted.read(data, **reading), **options)
    seconds = time.monotonic() - started
    for name, remarks in islice(done.remarks.items(), _TOLD):
        for words in remarks:
            warnings.warn(TableWarning(f"{name}: {words}"), stacklevel=1)
    for name, drift in islice(done.drift.items(), _TOLD):
        for words, _ in drift_lines(drift):
            warnings.warn(DriftWarning(f"{name}: {words}"), stacklevel=1)
    if as_json:
        found = {
            "out": given_out,
            "n_files": done.n_files,
            "n_rows": done.n_rows,
            "n_anomalies": done.n_anomalies,
            "n_suppressed": done.n_suppressed,
            "n_resumed": done.n_resumed,
            "threshold": fitted.threshold.as_dict(),
            "drift": {name: [asdict(d) for d in each] for name, each in done.drift.items()},
            "remark": done.remark,
            "seconds": round(seconds, 3),
        }
        typer.echo(json.dumps(found))
        return
    before = f", {done.n_resumed:,} of them by an earlier run" if done.n_resumed else ""
    typer.echo(
        f"Scored {count(done.n_rows, 'row')} of {count(done.n_files, 'file')} in "
        f"{seconds:.1f} s{before}: {done.n_anomalies:,} flagged ({fitted.threshold}). The "
        f"scores are in {given_out}."
    )
    _tell_suppressed(done.n_suppressed, "row")
    if done.drift:
        shown = short(", ".join(done.drift), 100)
        n = count(len(done.drift), "file")
        typer.echo(f"Rows of {n} do not look like the training rows: {shown}.")
    if done.remark:
        typer.echo(f"Nothing is flagged. {done.remark}")


def _follow(
    context: typer.Context, fitted: AnyModel, data: str, as_json: bool, **more: Any
) -> None:
    """Score rows as they come; with JSON, what there is to say is JSON on standard error."""
    method = getattr(fitted, "follow", None)
    if method is None:
        fail(f"--follow cannot be used with {fitted.kind}.")
    stop = threading.Event()

    def say(words: str) -> None:
        typer.echo(json.dumps({"warning": words}) if as_json else f"warning: {words}", err=True)

    more |= {"say": say, "stop": stop}
    (options,) = passed(context, "--follow", method, own={"follow", *_RULES}, **more)
    with _stopped_by_signals(stop):
        done = method(data, **options)
    found = {
        f"n_{fitted.things}": done.n_rows,
        "n_anomalies": done.n_anomalies,
        "n_suppressed": done.n_suppressed,
        "n_failed": done.n_failed,
        "drift": [asdict(each) for each in done.drift],
    }
    failed = f"; {count(done.n_failed, 'line')} could not be read" if done.n_failed else ""
    words = (
        f"Scored {count(done.n_rows, fitted.things.removesuffix('s'))}: "
        f"{done.n_anomalies:,} flagged ({fitted.threshold}){failed}."
    )
    typer.echo(json.dumps(found) if as_json else words, err=True)


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Set `stop` at the first Ctrl-C or SIGTERM; the second does what it always does."""

    def end(number: int, frame: object) -> None:
        signal.signal(number, before[signal.Signals(number)])
        stop.set()

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    for each in before:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
