"""The page about what reproduces: made from the records, whenever they change."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from aloof.bench.paper.cells import PEER, TABLES
from aloof.bench.paper.differences import Tally, markdown, signed
from aloof.bench.paper.filling import Filling
from aloof.bench.paper.notes import NOTES
from aloof.bench.paper.readings import otherwise, readings
from aloof.bench.paper.results import CUBO
from aloof.bench.paper.speeds import Speeds
from aloof.bench.paper.status import Status
from aloof.bench.paper.verdicts import verdicts
from aloof.bench.tables import Grid
from aloof.exceptions import ExperimentError
from aloof.phrases import duration

__all__ = ["make_page"]

_TITLE = "What reproduces"
_SETTINGS = ("ours", "paper", "paper, unit", PEER)
_CALLED = {PEER: "peers"}
_MARK = {"filled": "", "older": " *", "partial": " †", "missing": ""}

# The complete form of a table repeats what the short one has.
_SHORT = {
    "images-complete": "images",
    "odds-complete": "odds",
    "ablation-complete": "ablation",
}


def make_page(status: Status, results: Path, page: Path) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    status
        Of all tables.
    results
        The folder of results: pictures are linked.
    page
        Where the page will be.
    """
    if all(filling.state == "missing" for filling in status.fillings):
        raise ExperimentError(
            f"{results} holds no records of the paper's tables, so there is nothing to report "
            "yet."
        )
    tables = {name: _of(status, name) for name in TABLES}
    parts = [f"# {_TITLE}", *_introduction(status), "## At a glance", *_glance(tables)]
    parts += verdicts(status)
    for name, title in TABLES.items():
        parts.append(f"## {title}")
        parts += _table(name, tables, status)
        parts += _pictures(name, results, page)
    return "\n\n".join(map(_wrapped, parts)) + "\n"


def _wrapped(part: str) -> str:
    """Break the lines of what is no table and no heading."""
    if part.startswith(("|", "#", "!")):
        return part
    hanging = "  " if part.startswith("- ") else ""
    return "\n".join(
        textwrap.fill(
            line,
            100,
            subsequent_indent=hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in part.split("\n")
    )


def _of(status: Status, table: str) -> list[Filling]:
    return [filling for filling in status.fillings if filling.cell.table == table]


def _introduction(status: Status) -> list[str]:
    counts = {
        state: sum(f.state == state for f in status.fillings)
        for state in ("filled", "older", "partial", "missing")
    }
    older = ""
    if counts["older"]:
        older = (
            f"{counts['older']} are filled only by older revisions of their systems (marked *, "
            "to be rerun), "
        )
    places = len({f.cell.place for f in status.fillings})
    different = {(f.cell.kind, f.cell.sources, f.cell.members): f for f in status.fillings}
    whole = [f for f in different.values() if f.state == "filled"]
    return [
        "`aloof bench page` writes this page from the records in `results/`: do not edit it. "
        "The text between the figures is in `src/aloof/bench/paper/notes.py`. `aloof bench "
        "status` shows what is missing and which command runs it.",
        f"The paper's tables have {places} figures and pictures. We compare those of our "
        "methods in two settings: ours, and the paper's own numbers and networks (`paper`; on "
        "ODDS also `paper, unit`, with columns in [0, 1]). We compare those of peers once, as "
        "their authors published them if there is such a run. "
        f"That makes {len(status.fillings)} cells: {counts['filled']} are filled, "
        f"{older}{counts['partial']} have too few problems (marked †, not compared), and "
        f"{counts['missing']} are empty. Some stand in more than one table: of "
        f"{len(different)} different cells, {len(whole)} are filled, {len(status.few)} of them "
        "with 10 of the paper's 90 problems." + _left(status),
        "All figures are AUROC in percent (those of motion planning are shares of states in "
        "collision), mean ± standard deviation over problems, seeds or "
        "runs, with their number in brackets: [10 of 90] is ten of the paper's 90 problems. "
        "A difference is our figure minus the paper's, "
        "± its standard error, which treats the two as independent samples. On the paper's "
        "own problems, the error would be smaller: *within two standard errors* is easy to "
        "achieve with 10 problems, and means something with 90. Without labels, the ten "
        "problems of an image set are the paper's own, one for each class: there, the error "
        "is far too large, and being within two of them says little. Where two experiments "
        "have the same cell, the later run is shown.",
        "As in the paper, figures of our methods on images and on ODDS are of five models, "
        "and those of peers with networks of one, unless K says otherwise; where five single "
        "ones were trained, it is their mean. On images, the labelled class is the next one "
        "in number for ten problems, and each of the other nine for 90. The paper evaluates "
        "during training, on images held out from it or, on ODDS, on the training rows, and "
        "does not say whether it keeps the best epoch; ours is the last.",
        "Tables of peers say how each was run: `(paper)` with the published networks and "
        "schedule (for `ss-dgm`, as we first read them: see the notes), `(ours)` with those of "
        "our methods, `unit` on columns in [0, 1], `-unfair` with the parameters (of "
        "Inclusive-NRF, the epoch) that are best on a tenth of the test rows, as the paper "
        "chose them.",
    ]


def _left(status: Status) -> str:
    """Say how long what is missing takes."""
    if not status.works:
        return ""
    minutes = replace(status, speeds=Speeds(status.results, "gpu")).record["minutes"]
    places = {
        "networks": "on one NVIDIA H200",
        "shallow": "on a CPU for systems without networks",
    }
    parts = [f"{duration(minutes[k])} {where}" for k, where in places.items() if minutes[k]]
    n_more = len(status.few) - status.n_staying_few
    return (
        f" The remaining runs in `experiments/`, all 90 problems of {n_more} of these cells "
        f"included, take about {', and '.join(parts)}."
    )


def _tallies(fillings: Sequence[Filling]) -> dict[str, Tally]:
    return {
        setting: Tally([f for f in fillings if f.cell.setting == setting])
        for setting in _SETTINGS
    }


def _glance(tables: dict[str, list[Filling]]) -> list[str]:
    rows = []
    for name, fillings in tables.items():
        tallies = _tallies(fillings)
        rows.append((TABLES[name], *(tallies[setting].text for setting in _SETTINGS)))
    header = ("", *(_CALLED.get(setting, setting) for setting in _SETTINGS))
    older = any(f.state == "older" for fillings in tables.values() for f in fillings)
    return [
        "Filled cells out of all; the mean difference, and in brackets the lowest and the "
        "highest." + (" Differences include cells marked *." if older else ""),
        markdown(Grid("", header, tuple(rows))),
    ]


def _table(name: str, tables: dict[str, list[Filling]], status: Status) -> Iterator[str]:
    """Yield the paragraphs of a table."""
    fillings = tables[name]
    shown = fillings
    if name in _SHORT:
        printed = {_printed(f) for f in tables[_SHORT[name]]}
        shown = [f for f in fillings if _printed(f) not in printed]
        yield (
            f"Only cells that are not in *{TABLES[_SHORT[name]]}*."
            if shown
            else f"All of it is in *{TABLES[_SHORT[name]]}*."
        )
    yield from NOTES.get(name, ())
    lines = [
        f"- {_CALLED.get(setting, f'setting `{setting}`')}: {tally.sentence}."
        for setting, tally in _tallies(fillings).items()
        if tally.compared
    ]
    if lines:
        yield "\n".join(lines)
    shown = [f for f in shown if f.cell.kind]
    conditions = any(f.cell.condition for f in shown)
    for dataset in dict.fromkeys(f.cell.dataset if conditions else "" for f in shown):
        own = [f for f in shown if not dataset or f.cell.dataset == dataset]
        ours = [f for f in own if f.cell.setting != PEER]
        peers = [f for f in own if f.cell.setting == PEER]
        for grid, whose in ((_ours(ours, name), "Our methods"), (_peers(peers, name), "Peers")):
            if grid is not None:
                yield f"**{whose}, {dataset}**" if dataset else f"**{whose}**"
                yield markdown(grid)
    yield from otherwise(shown, status)
    if name in ("images", "odds-complete"):
        yield from readings(status, fillings)


def _printed(filling: Filling) -> tuple[object, ...]:
    cell = filling.cell
    return cell.row, cell.dataset, cell.condition, cell.setting, cell.mean, cell.std


def _conditions(table: str) -> str:
    """Return what the second column of a table is."""
    named = {"pollution": "hidden", "text": "normal", "planning": ""}
    return named.get(
        table, "data set" if table.startswith(("odds", "ablation")) else "labelled"
    )


def _column(filling: Filling) -> str:
    cell = filling.cell
    return cell.condition.removesuffix(" normal") or cell.dataset


def _ours(fillings: Sequence[Filling], table: str) -> Grid | None:
    """Return a line for each cell of ours, the settings beside each other."""
    places = dict.fromkeys(f.cell.place for f in fillings)
    if not places:
        return None
    settings = [s for s in _SETTINGS if any(f.cell.setting == s for f in fillings)]
    by = {(f.cell.place, f.cell.setting): f for f in fillings}
    header = ["system", _conditions(table), "the paper"]
    for setting in settings:
        header += [setting, "difference"]
    rows = []
    for place in places:
        some = next(by[place, s] for s in settings if (place, s) in by)
        row = [some.cell.row, _column(some), _paper(some)]
        for setting in settings:
            found = by.get((place, setting))
            row += ["", ""] if found is None else [_figure(found), _difference(found)]
        rows.append(tuple(row))
    return Grid("", tuple(header), tuple(rows))


def _peers(fillings: Sequence[Filling], table: str) -> Grid | None:
    """Return a line for each cell of a peer, with what filled it."""
    if not fillings:
        return None
    header = ("system", _conditions(table), "the paper", "our run", "difference", "run as")
    rows = (
        (
            f.cell.row,
            _column(f),
            _paper(f),
            _figure(f),
            _difference(f),
            "" if f.source is None else f.source.label,
        )
        for f in fillings
    )
    return Grid("", header, tuple(rows))


def _paper(filling: Filling) -> str:
    """Return the paper's figure with the digits it has."""
    mean, std = filling.cell.mean, filling.cell.std
    if mean is None:
        return ""
    text = f"{mean:.1f}" if round(mean, 1) == mean else f"{mean:g}"
    if std is None:
        return text
    return f"{text} ± " + (f"{std:.1f}" if round(std, 1) == std else f"{std:g}")


def _figure(filling: Filling) -> str:
    own, cell = filling.moments, filling.cell
    if not own.n:
        return ""
    many = f"{filling.n} of {cell.whole}" if filling.n < cell.whole else f"{filling.n}"
    return f"{own.text} [{many}]{_MARK[filling.state]}"


def _difference(filling: Filling) -> str:
    if filling.difference is None or filling.state not in ("filled", "older"):
        return ""
    error = filling.error
    return signed(filling.difference) + ("" if error is None else f" ± {error:.1f}")


_STATES = "States of a VAE and of DP-VAE in unseen worlds"
_CODES = "Latent codes of a VAE and of DP-VAE"

# From the folder of results.
_DRAWN = {
    "planning": {
        "planning/states-ours.png": f"{_STATES}, our setting",
        "planning/states-paper.png": f"{_STATES}, the paper's setting",
    },
    "figure1": {
        "figure1/figure1.png": f"{_CODES}, the paper's setting",
        "figure1-ours/figure1.png": f"{_CODES}, our setting",
    },
    "cubo": {f"../{CUBO}": "The CUBO loss over the mean of a posterior"},
}


def _pictures(name: str, results: Path, page: Path) -> Iterator[str]:
    drawn = _DRAWN.get(name, {})
    found = {place: words for place, words in drawn.items() if (results / place).is_file()}
    for place, words in found.items():
        link = Path(os.path.relpath(results / place, page.parent)).as_posix()
        yield f"![{words}]({link})"
    if drawn and not found:
        yield "The picture has not been drawn yet."
