"""The ``aloof-lite`` command: scores by an exported model, without torch."""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from aloof._version import __version__
from aloof.exceptions import AloofError, ImageError, TableError
from aloof.imagery import (
    Channels,
    Skipped,
    decode_whole,
    open_images,
    page_of,
    paged,
    strict_pillow,
)
from aloof.io import replacing, writing
from aloof.lite.columns import Unread
from aloof.lite.delimited import open_rows
from aloof.lite.scorer import LiteModel, load
from aloof.phrases import count
from aloof.suggestion import closest

__all__ = ["command", "main"]

_ROWS = 8192  # at a time


def command() -> NoReturn:
    """Run the command line and end the process."""
    sys.exit(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code: 0 success, 2 bad usage or bad input."""
    given = _parser().parse_args(arguments)
    try:
        given.run(given)
    except AloofError as error:
        print(f"aloof-lite: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read it is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("aloof-lite: interrupted.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "aloof-lite",
        description="Score rows with a model that 'aloof export MODEL --onnx FILE' wrote. "
        "Needs NumPy and ONNX Runtime, and nothing else.",
    )
    parser.add_argument("--version", action="version", version=f"aloof-lite {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    score = commands.add_parser(
        "score",
        help="Score every row of a file.",
        description="Write the id, anomaly_score (higher is worse), p_value and is_anomaly of "
        "every row or image, in their order. A CSV file need not be laid out like the "
        "training file: delimiter, encoding and header line are detected again; numbers and "
        "dates are read as in training.",
        epilog="Example: aloof-lite score model.onnx new.csv --out scores.csv",
    )
    score.add_argument("model", metavar="MODEL", help="The .onnx file.")
    score.add_argument(
        "data",
        metavar="DATA",
        help="A CSV or TSV file (also .gz, .bz2, .xz), - for standard input. For models of "
        "images: a folder, a zip archive or an image file (needs Pillow), or a file that "
        "numpy.save wrote (.npy), as for models of arrays.",
    )
    score.add_argument(
        "--out",
        required=True,
        metavar="SCORES",
        help="The file to write, .csv or .tsv; - for standard output.",
    )
    score.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="Copy a column, besides the id. Repeatable.",
    )
    score.add_argument("--flagged-only", action="store_true", help="Write flagged rows only.")
    score.add_argument("--force", action="store_true", help="Replace an existing file.")
    score.add_argument("--delimiter", help="What separates values. Default: detected.")
    score.add_argument("--encoding", help="Of the file, such as latin-1. Default: detected.")
    score.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="Whether there is a line of column names. Default: there must be one.",
    )
    score.add_argument("--threads", type=int, metavar="N", help="Default: all processors.")
    score.set_defaults(run=_score)
    info = commands.add_parser(
        "info",
        help="Say what a model takes and gives.",
        description="Say what a model takes and gives, and check that it computes the same "
        "here as where it was exported.",
    )
    info.add_argument("model", metavar="MODEL", help="The .onnx file.")
    info.add_argument("--json", action="store_true", help="Print one JSON object.")
    info.set_defaults(run=_info)
    return parser


def _info(given: argparse.Namespace) -> None:
    model = load(given.model)
    known = {name: value for name, value in model.notes.items() if name != "probes"}
    if given.json:
        print(json.dumps(known | {"inputs": model.inputs}))
        return
    print(f"{given.model}: {model.notes['title']}, written by aloof {model.notes['aloof']}.")
    print(f"Flags {model.notes['threshold']['words']}.")
    print("Takes, for each row:")
    kinds = {column.name: column.kind for column in model.columns}
    for name, kind in model.inputs.items():
        print(f"  {name}: {kind}{f' ({kinds[name]})' if name in kinds else ''}")
    print(f"Gives: {', '.join(model.answers)}.")


def _score(given: argparse.Namespace) -> None:
    _check_output(given.out, given.force)
    model = load(given.model, threads=given.threads)
    if model.kind == "table":
        parts = _table(model, given)
    else:
        is_array = model.kind == "arrays" or given.data.lower().endswith(".npy")
        parts = _array(model, given) if is_array else _images(model, given)
    n = flagged = 0
    with _output(given.out) as file:
        delimiter = "\t" if given.out.lower().endswith(".tsv") else ","
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        for number, (kept, names, found) in enumerate(parts):
            if not number:
                writer.writerow([*names, *model.answers])
            is_anomaly = found["is_anomaly"]
            n, flagged = n + len(is_anomaly), flagged + int(is_anomaly.sum())
            columns = [*kept, *(_written(found[name]) for name in model.answers)]
            rows: Any = zip(*columns, strict=True)
            if given.flagged_only:
                rows = (row for row, is_one in zip(rows, is_anomaly, strict=True) if is_one)
            writer.writerows(rows)
    what = "image" if model.kind == "images" else "row"
    print(f"{count(n, what)} scored, {flagged:,} flagged.", file=sys.stderr)


_Part = tuple[list[list[str]], list[str], dict[str, NDArray[Any]]]


def _table(model: LiteModel, given: argparse.Namespace) -> Iterator[_Part]:
    """Yield columns that are kept, their names, and the answers, part by part."""
    reading = {name: getattr(given, name) for name in ("delimiter", "encoding", "header")}
    source = open_rows(given.data, **reading, before=model.notes["reading"])
    names = list(source.names)
    own = [] if model.notes["id"] is None else [model.notes["id"]]
    keep = list(dict.fromkeys([*own, *given.keep]))
    for name in keep:
        if name not in names:
            raise TableError(f"There is no column {name!r}{closest(name, names)}.")
        if name in model.answers:
            raise TableError(f"Cannot keep column {name!r}: the scores have such a column.")
    model.check_names(names)
    unread: dict[str, Unread] = {}
    waiting: list[_Part] = []
    n = 0
    for batch in source.batches(_ROWS):
        n += len(batch)
        columns = dict(zip(names, map(list, zip(*batch, strict=True)), strict=True))
        found = model.score_batch(columns, unread)
        part = [columns[name] for name in keep], keep, found
        if model.decides_together:
            waiting.append(part)  # the decisions are known at the end
        else:
            yield part
    if not n:
        raise TableError(f"{given.data} has columns ({', '.join(names[:5])}) but no rows.")
    if waiting:
        whole = {
            name: np.concatenate([found[name] for _, _, found in waiting])
            for name in model.answers
        }
        kept = [
            list(chain.from_iterable(part[place] for part, _, _ in waiting))
            for place in range(len(keep))
        ]
        yield kept, keep, model.decided(whole)
    for words in [*source.warnings, *map(str, unread.values())]:
        print(f"warning: {words}", file=sys.stderr)


def _images(model: LiteModel, given: argparse.Namespace) -> Iterator[_Part]:
    if given.keep:
        raise TableError("Images have no columns to keep.")
    depth, height, width = model.notes["shape"]
    channels: Channels = 1 if depth == 1 else 3
    names: list[str] = []
    answers: list[dict[str, NDArray[Any]]] = []
    skipped = list((collection := open_images(given.data)).skipped)
    with strict_pillow(), collection.opened() as reader:
        for name in chain.from_iterable(paged(file, reader) for file in collection.names):
            try:
                with reader(name) as file:
                    pixels, _ = decode_whole(
                        file.read(),
                        (height, width),
                        channels,
                        keeps_proportions=model.notes["keeps_proportions"],
                        page=page_of(name),
                    )
            except ImageError as error:
                skipped.append(Skipped(name, str(error)))
                continue
            names.append(name)
            answers.append(model.run({"rows": pixels[None]}))
    if not names:
        first = f": {skipped[0]}" if skipped else ""
        raise TableError(f"{given.data} holds no image that can be read{first}.")
    for each in skipped:
        print(f"warning: {each}, and has no score.", file=sys.stderr)
    whole = {name: np.concatenate([one[name] for one in answers]) for name in model.answers}
    yield [names], ["file"], model.decided(whole)


def _array(model: LiteModel, given: argparse.Namespace) -> Iterator[_Part]:
    if given.keep:
        raise TableError("An array has no columns to keep.")
    try:
        rows = np.load(given.data, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise TableError(
            f"{given.data} cannot be read as an array. This is a model of {model.kind}: give "
            "it an array that numpy.save wrote (.npy)."
        ) from error
    yield [], [], model.score(rows)


def _written(values: NDArray[Any]) -> list[Any]:
    if values.dtype == np.bool_:
        return ["true" if value else "false" for value in values]
    return list(map(repr, values.tolist()))


def _check_output(out: str, force: bool) -> None:
    path = Path(out)
    if out == "-":
        return
    if path.suffix.lower() not in (".csv", ".tsv"):
        raise TableError(f"Cannot write {out}: its name must end in .csv or .tsv.")
    if path.exists() and not force:
        raise TableError(f"{out} already exists. Choose another name, or add --force.")
    if not path.parent.is_dir():
        raise TableError(f"Cannot write {out}: there is no folder {path.parent}.")


@contextmanager
def _output(out: str) -> Iterator[TextIO]:
    """Open standard output, or a file that appears when it is whole."""
    if out == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    path = Path(out)
    with replacing(path, TableError) as aside, writing(path, TableError):
        with aside.open("w", encoding="utf-8", newline="") as file:
            yield file
