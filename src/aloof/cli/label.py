"""``aloof label``: answers of reviewers, kept beside the model."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from aloof.cli.group import fail
from aloof.cli.options import Json, Model, Reviewer, Store, reviewer
from aloof.feedback.answer import WORDS
from aloof.feedback.files import as_table, history_table, read_answers
from aloof.feedback.store import AnswerStore
from aloof.models.loading import open_model
from aloof.models.table.outputs import check_output, write_table
from aloof.phrases import count

__all__ = ["label"]

_SHOWN = 5


def label(
    model: Model,
    answers: Annotated[
        str | None,
        typer.Argument(
            metavar="ANSWERS",
            help="A table of answers: the id of a row, and 1, 0 or unsure. Without: show what "
            "there is.",
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column that names the rows. Default: the model's id column, or row.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column of answers. Default: answer, label, or the column of labels of "
            "the training table.",
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Without ids: the file that the rows are numbered in.",
        ),
    ] = None,
    by: Reviewer = None,
    undo: Annotated[
        bool,
        typer.Option(
            "--undo",
            help="Take back the latest answers of --by: about the rows in ANSWERS, or without "
            "it the last ones.",
        ),
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write how the answers stand into a table."),
    ] = None,
    history: Annotated[
        bool,
        typer.Option("--history", help="With --export: everything that was ever said."),
    ] = False,
    store: Store = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that is there.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Keep what reviewers say about rows: anomaly, normal or unsure.

    Answers are joined to rows by id. They are kept beside the model, in MODEL.answers.sqlite,
    or in a PostgreSQL that several share (**--store**, or the variable ALOOF_STORE). Nothing is
    overwritten: a new answer follows an old one, and an undo brings the old one back. Where one
    reviewer says anomaly and another normal, the row is in conflict and teaches nothing.

    A table with all columns of the model has its rows kept too, so that **aloof refit** can
    learn from them wherever they came from.

    Example: **aloof label model answers.csv --by eve**

    What there is, as a table: **aloof label model --export labels.csv**
    """
    if history and export is None:
        fail("--history says what to write; it needs --export FILE.")
    if export is not None:
        check_output(export, force=force)
    fitted = open_model(model, device="cpu")
    who = reviewer(by)
    with AnswerStore.of(model, store) as kept:
        n_given = n_undone = 0
        if answers is not None:
            file = None if source is None else Path(source).name
            given = read_answers(answers, fitted, id=id, label=label, by=who, source=file)
            if undo:
                keys = dict.fromkeys(answer.key for answer in given)
                n_undone = sum(kept.undo(by=who, key=key) is not None for key in keys)
            else:
                n_given = len(kept.add(given)) if given else 0
        elif undo:
            before = [event.number or 0 for event in kept.events()]
            kept.undo(by=who)  # all that was said at once
            since = kept.events(after=max(before, default=0))
            n_undone = sum(event.by == who and event.undoes is not None for event in since)
        standing = kept.standings()
        if export is not None:
            table = (
                history_table(kept.events()) if history else as_table(standing.values(), fitted)
            )
            write_table(export, table, force=force)
        name = kept.name
    conflicts = [each for each in standing.values() if each.in_conflict]
    found: dict[str, Any] = {
        "store": name,
        "n_given": n_given,
        "n_undone": n_undone,
        "n_rows": len(standing),
        **{
            f"n_{word}": n
            for word, n in _counts(each.label for each in standing.values()).items()
        },
        "conflicts": [
            {"row": each.last.row, "answers": {a.by: a.word for a in each.answers}}
            for each in conflicts
        ],
    }
    if as_json:
        typer.echo(json.dumps(found))
        return
    if answers is not None and not undo:
        typer.echo(f"Kept {count(n_given, 'answer')}.")
    if undo:
        typer.echo(f"Took back {count(n_undone, 'answer')} of {who}.")
    typer.echo(
        f"{count(len(standing), 'row')} answered: {found['n_anomaly']:,} anomalies, "
        f"{found['n_normal']:,} normal, {found['n_unsure']:,} unsure or in conflict. They are "
        f"in {name}."
    )
    for each in conflicts[:_SHOWN]:
        said = ", ".join(f"{answer.by}: {answer.word}" for answer in each.answers)
        typer.echo(f"warning: row {each.last.row} is in conflict ({said})", err=True)
    if len(conflicts) > _SHOWN:
        typer.echo(f"warning: {len(conflicts) - _SHOWN:,} more conflicts", err=True)
    if export is not None:
        typer.echo(f"Written to {export}.")
    elif n_given:
        typer.echo(f"Next: aloof refit {model}")


def _counts(labels: Any) -> dict[str, int]:
    counted = Counter(labels)
    return {word: counted.get(value, 0) for value, word in WORDS.items()}
