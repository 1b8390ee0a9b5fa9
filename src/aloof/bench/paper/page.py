"""The page about what reproduces: made from the records, whenever they change."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aloof.bench.methods import title_of
from aloof.bench.paper.cells import PEER, TABLES, Cell, Source, Want
from aloof.bench.paper.filling import Filling, fill
from aloof.bench.paper.kinds import KINDS
from aloof.bench.paper.notes import NOTES
from aloof.bench.paper.results import CUBO
from aloof.bench.paper.speeds import Speeds
from aloof.bench.paper.status import Status, name_cells
from aloof.bench.tables import Grid, to_markdown
from aloof.exceptions import ExperimentError

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
    parts += _claims(status)
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
    places = len({f.cell.place for f in status.fillings})
    different = {(f.cell.kind, f.cell.sources, f.cell.members): f for f in status.fillings}
    whole = [f for f in different.values() if f.state == "filled"]
    few = sum(f.n < f.cell.whole for f in whole if f.cell.kind == "images")
    return [
        "`aloof bench page` writes this page from the records in `results/`: do not edit it. "
        "The text between the figures is in `src/aloof/bench/paper/notes.py`. `aloof bench "
        "status` shows what is missing and which command runs it.",
        f"The paper's tables have {places} figures and pictures. We compare those of our "
        "methods in two settings: ours, and the paper's own numbers and networks (`paper`; on "
        "ODDS also `paper, unit`, with columns in [0, 1]). We compare those of peers once, as "
        "their authors published them if there is such a run. "
        f"That makes {len(status.fillings)} cells: {counts['filled']} are filled, "
        f"{counts['older']} more only by older revisions of their systems (marked *, to be "
        f"rerun), {counts['partial']} have too few problems (marked †, not compared), and "
        f"{counts['missing']} are empty. Some stand in more than one table: of "
        f"{len(different)} different cells, {len(whole)} are filled, {few} of them with 10 of "
        "the paper's 90 problems." + _left(status),
        "All figures are AUROC in percent (those of motion planning are shares of states in "
        "collision), mean ± standard deviation over problems, seeds or "
        "runs, with their number in brackets: [10 of 90] is ten of the paper's 90 problems. "
        "A difference is our figure minus the paper's, "
        "± its standard error, which treats the two as independent samples. On the paper's "
        "own problems, the error would be smaller: *within two standard errors* is easy to "
        "achieve with 10 problems, and means something with 90. Where two experiments have "
        "the same cell, it shows the later run.",
        "Tables of peers say how each was run: `(paper)` with the networks and the schedule "
        "of its authors, `(ours)` with those of our methods, `-unfair` with the parameters "
        "that are best on a tenth of the test rows, as the paper chose them.",
    ]


def _left(status: Status) -> str:
    """Say how long what is missing takes."""
    if not status.works:
        return ""
    minutes = replace(status, speeds=Speeds(status.results, "gpu")).record["minutes"]
    return (
        f" What is left, all 90 problems included, takes about {minutes['networks'] / 60:.0f} "
        f"hours on one NVIDIA H200, and {minutes['shallow'] / 60:.1f} on a CPU for systems "
        "without networks."
    )


@dataclass(frozen=True)
class _Tally:
    """The differences of some cells."""

    fillings: Sequence[Filling]

    @property
    def compared(self) -> list[tuple[float, Filling]]:
        """The differences there are, with their cells."""
        found = ((f.difference, f) for f in self.fillings if f.state in ("filled", "older"))
        return [(difference, f) for difference, f in found if difference is not None]

    @property
    def text(self) -> str:
        """How many, the mean and the worst; empty where no such cell is in the paper."""
        if not self.fillings:
            return ""
        n = sum(f.state == "filled" for f in self.fillings)
        words = f"{n} of {len(self.fillings)}"
        if self.compared:
            words += f", {_signed(self.mean)}, {_signed(self.worst)}"
        return words

    @property
    def mean(self) -> float:
        """The mean difference."""
        return sum(difference for difference, _ in self.compared) / len(self.compared)

    @property
    def worst(self) -> float:
        """The smallest difference."""
        return min(difference for difference, _ in self.compared)

    @property
    def sentence(self) -> str:
        """The same for people, and which are off by more than two standard errors."""
        worst, where = min(self.compared, key=lambda pair: pair[0])
        words = f"mean difference {_signed(self.mean)}, worst {_signed(worst)}"
        words += f" ({where.cell.label})"
        known = [(d, f.error, f) for d, f in self.compared if f.error is not None]
        if known:
            above = sum(difference > 2 * error for difference, error, _ in known)
            below = [f.cell for difference, error, f in known if difference < -2 * error]
            near = len(known) - above - len(below)
            words += f"; {near} within two standard errors, {above} above, {len(below)} below"
            words += f": {name_cells(below)}" if below else ""
        return words


def _tallies(fillings: Sequence[Filling]) -> dict[str, _Tally]:
    return {
        setting: _Tally([f for f in fillings if f.cell.setting == setting])
        for setting in _SETTINGS
    }


def _glance(tables: dict[str, list[Filling]]) -> list[str]:
    rows = []
    for name, fillings in tables.items():
        tallies = _tallies(fillings)
        rows.append((TABLES[name], *(tallies[setting].text for setting in _SETTINGS)))
    header = ("", *(_CALLED.get(setting, setting) for setting in _SETTINGS))
    return [
        "Filled cells out of all; the mean difference; the worst difference. Differences "
        "include cells marked *.",
        _markdown(Grid("", header, tuple(rows))),
    ]


def _table(name: str, tables: dict[str, list[Filling]], status: Status) -> Iterator[str]:
    """Yield the paragraphs of a table."""
    fillings = tables[name]
    shown = fillings
    if name in _SHORT:
        printed = {_printed(f) for f in tables[_SHORT[name]]}
        shown = [f for f in fillings if _printed(f) not in printed]
        yield (
            f"What *{TABLES[_SHORT[name]]}* does not have; the rest is there."
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
                yield _markdown(grid)
    yield from _otherwise(shown, status)
    if name in ("images", "odds-complete"):
        yield from _readings(status, fillings)


def _printed(filling: Filling) -> tuple[object, ...]:
    cell = filling.cell
    return cell.row, cell.dataset, cell.condition, cell.setting, cell.mean, cell.std


def _markdown(grid: Grid) -> str:
    """Return the lines of a table alone."""
    return "\n".join(
        line for line in to_markdown([grid], title="").split("\n") if line.startswith("|")
    )


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
    return _signed(filling.difference) + ("" if error is None else f" ± {error:.1f}")


def _signed(value: float) -> str:
    """Return a difference; none is minus zero."""
    return f"{round(value, 1) + 0.0:+.1f}"


def _otherwise(fillings: Sequence[Filling], status: Status) -> Iterator[str]:
    """Yield how peers did that were also run in another way, over the cells with both."""
    both: dict[tuple[str, str], list[tuple[Filling, Filling]]] = {}
    for shown in fillings:
        cell = shown.cell
        if cell.setting != PEER or shown.state != "filled" or shown.source is None:
            continue
        for source in _ways(cell, status):
            other = fill(replace(cell, sources=(source,)), status.results)
            if source != shown.source and other.state == "filled":
                key = source.label, shown.source.label
                both.setdefault(key, []).append((other, shown))
    if not both:
        return
    rows = []
    for labels, pairs in sorted(both.items()):
        row = [str(len(pairs))]
        for label, own in zip(labels, zip(*pairs, strict=True), strict=True):
            found = _Tally(own)
            row += [label, _signed(found.mean), _signed(found.worst)]
        rows.append((row[1], row[0], *row[2:]))
    yield (
        "Some of these peers were also run in other ways. Mean and worst difference from the "
        "paper over the cells that have both, and those of the run shown above:"
    )
    header = ("also run as", "cells", "mean", "worst", "shown above", "mean", "worst")
    yield _markdown(Grid("", header, tuple(rows)))


def _ways(cell: Cell, status: Status) -> Iterator[Source]:
    """Yield what can fill a cell, and variants of it that were run."""
    yield from cell.sources
    kind = KINDS[cell.kind]
    plain = {source.wants: source.label for source in cell.sources}
    for want in status.results.wants(kind.name):
        case = dict(zip(kind.key, want, strict=True))
        if variant := case.get("variant"):
            same = tuple((case | {"variant": ""}).values())
            if label := plain.get((same,)):
                yield Source(f"{label}: {variant}", (want,))


def _readings(status: Status, fillings: Sequence[Filling]) -> Iterator[str]:
    """Yield the difference of each reading of the paper that was tried.

    A reading is a variant of the setting `paper`, on tables also with another scaling.
    """
    figures = [f.cell for f in fillings if f.cell.setting == "paper" and f.cell.kind]
    of = {want: cell for cell in figures for want in _wants(cell)}
    own_cells = {want for f in status.fillings for want in _wants(f.cell)}
    tried: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for name in dict.fromkeys(cell.kind for cell in figures):
        kind = KINDS[name]
        for want in status.results.wants(name):
            case = dict(zip(kind.key, want, strict=True))
            plain = case | {"variant": "", "scaling": "standard"}
            cell = of.get(tuple(plain[key] for key in kind.key))
            if cell is None or (case["variant"] and want in own_cells):
                continue
            found = fill(replace(cell, sources=(Source("", (want,)),)), status.results)
            if found.state == "filled" and found.difference is not None:
                own = tried.setdefault((case["variant"], case.get("scaling", "")), {})
                own[cell.row, _whole_column(cell)] = found.difference
    if len(tried) < 2:
        return
    yield (
        "The paper leaves some choices open. We tried several readings, each with everything "
        "else as in the setting `paper`. Differences from the paper:"
    )
    # What was only run as it is has nothing to stand beside.
    other = [found for reading, found in tried.items() if reading not in _AS_IT_IS]
    every = dict.fromkeys((cell.row, _whole_column(cell)) for cell in figures)
    places = [place for place in every if any(place in found for found in other)]
    for row in dict.fromkeys(row for row, _ in places):
        columns = [column for own, column in places if own == row]
        lines = [
            (
                _reading(*reading),
                *(_signed(d[row, n]) if (row, n) in d else "" for n in columns),
            )
            for reading, d in sorted(tried.items())
        ]
        shown = tuple(line for line in lines if any(line[1:]))
        yield _markdown(Grid("", (row, *columns), shown))


_AS_IT_IS = (("", ""), ("", "standard"))


def _wants(cell: Cell) -> Iterator[Want]:
    return (want for source in cell.sources for want in source.wants)


def _whole_column(cell: Cell) -> str:
    return f"{cell.dataset} {cell.condition}".strip()


def _reading(variant: str, scaling: str) -> str:
    columns = {"standard": "columns standardised", "unit": "columns in [0, 1]"}.get(scaling)
    return ", ".join(filter(None, (variant, columns))) or "setting `paper`"


def _claims(status: Status) -> Iterator[str]:
    """Yield three sentences of the paper and what the records say about them."""
    cells = [filling.cell for filling in status.fillings]
    peers = ("deep-sad", "deep-svdd")
    one, five = (
        [c for c in cells if c.row in [f"{peer}, K = {k}" for peer in peers]] for k in (1, 5)
    )
    ill = [cell for cell in cells if cell.table == "ill-trained"]
    yield "## Three claims of the paper, and our records"
    yield (
        "**Ensembles have little effect on Deep SAD**, because distances to different "
        "centres have different scales. On CIFAR-10, by how many points five models beat one:"
    )
    yield from _gains(status, one, five, lambda ours, _: ours > _SMALL)
    yield (
        "**Deep SAD needs a well-trained autoencoder to begin with**: after ten epochs of "
        "pre-training, its objective has no effect. On CIFAR-10, by how many points 150 "
        "epochs of pre-training beat ten, for one model:"
    )
    yield from _gains(status, ill, one, lambda ours, theirs: ours < theirs / 2)
    yield (
        "**Both methods are better than Deep SAD.** The paper's tables compare five models of "
        "each of its methods with one of Deep SAD; in the paper, five of Deep SAD are no "
        "better. On CIFAR-10, by how many points five models beat five of Deep SAD:"
    )
    for method in ("dp", "mml"):
        title = title_of(method)
        own = [cell for cell in cells if cell.row == f"{title}, K = 5"]
        yield f"*{title}*"
        yield from _gains(status, five, own, lambda ours, _: ours <= 0)
    yield (
        "On Fashion-MNIST with 5 % of labels, our setting is ahead of five models of Deep SAD "
        "over all 90 problems ([images.md](images.md)). An earlier revision of our methods "
        "made that run; the tables below have ten problems of today's."
    )


# Points that an effect has to have to be one.
_SMALL = 1.0


def _gains(
    status: Status,
    before: Sequence[Cell],
    after: Sequence[Cell],
    otherwise: Callable[[float, float], bool],
) -> Iterator[str]:
    """Yield what is gained, by the ratio of labelled anomalies, and whether that is news.

    Both sides have the setting that has more ratios with labels, the paper's where both do.
    """
    pairs = [(b, a) for b in before for a in after if b.condition == a.condition]
    found = {
        setting: {
            b.condition: gain
            for b, a in pairs
            if {b.setting, a.setting} <= {PEER, setting}
            and (gain := _gain(*(_in(setting, cell, status) for cell in (b, a)))) is not None
        }
        for setting in ("paper", "ours")
    }
    setting = max(found, key=lambda name: sum(float(ratio) > 0 for ratio in found[name]))
    ours = found[setting]
    theirs = {b.condition: (a.mean or 0.0) - (b.mean or 0.0) for b, a in pairs}
    rows = [("the paper", *(_signed(gain) for gain in theirs.values()))]
    rows.append(("our records", *(_signed(ours[r]) if r in ours else "" for r in theirs)))
    yield _markdown(Grid("", ("labelled", *theirs), tuple(rows)))
    labelled = [ratio for ratio in ours if float(ratio)]
    if not labelled:
        yield "There are no records for this yet."
        return
    means = [sum(some[r] for r in labelled) / len(labelled) for some in (ours, theirs)]
    words = "Our records say otherwise" if otherwise(*means) else "Our records agree"
    yield (
        f"{words}: {_signed(means[0])} points on average where there are labels; the paper "
        f"has {_signed(means[1])} (setting `{setting}`)."
    )


def _in(setting: str, cell: Cell, status: Status) -> Filling:
    """Return what fills a cell in one setting alone."""
    sources = tuple(s for s in cell.sources if s.wants[0][-1] == setting)
    return fill(replace(cell, sources=sources), status.results)


def _gain(before: Filling, after: Filling) -> float | None:
    """Return the difference of two cells with the same number of problems."""
    if before.n != after.n or before.state != "filled" or after.state != "filled":
        return None
    return after.moments.mean - before.moments.mean


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
