"""Three sentences of the paper, and what the records say about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from aloof.bench.methods import title_of
from aloof.bench.paper.cells import PEER, Cell
from aloof.bench.paper.differences import markdown, signed
from aloof.bench.paper.filling import Filling, fill
from aloof.bench.paper.notes import NOTES
from aloof.bench.paper.status import Status
from aloof.bench.statistics import Paired, paired
from aloof.bench.tables import Grid

__all__ = ["verdicts"]

# Points that an effect has to have to be one.
_SMALL = 1.0


def verdicts(status: Status) -> Iterator[str]:
    """Yield three sentences of the paper and what the records say about them."""
    cells = [filling.cell for filling in status.fillings]
    peers = ("deep-sad", "deep-svdd")
    one, five = (
        [c for c in cells if c.row in [f"{peer}, K = {k}" for peer in peers]] for k in (1, 5)
    )
    ill = [cell for cell in cells if cell.table == "ill-trained"]
    yield "## Three claims of the paper, and our records"
    yield "The p-values are of paired t-tests over the problems of our records."
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
    yield from NOTES["claims"]


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
    rows = [("the paper", *(signed(gain) for gain in theirs.values()))]
    rows.append(("our records", *(ours[r].text if r in ours else "" for r in theirs)))
    yield markdown(Grid("", ("labelled", *theirs), tuple(rows)))
    labelled = [ratio for ratio in ours if float(ratio)]
    if not labelled:
        yield "There are no records for this yet."
        return
    means = [
        sum(values) / len(labelled)
        for values in ([ours[r].difference for r in labelled], [theirs[r] for r in labelled])
    ]
    words = "Our records say otherwise" if otherwise(*means) else "Our records agree"
    yield (
        f"{words}: {signed(means[0])} points on average where there are labels; the paper "
        f"has {signed(means[1])} (setting `{setting}`)."
    )


def _in(setting: str, cell: Cell, status: Status) -> Filling:
    """Return what fills a cell in one setting alone."""
    sources = tuple(s for s in cell.sources if s.wants[0][-1] == setting)
    return fill(replace(cell, sources=sources), status.results)


def _gain(before: Filling, after: Filling) -> Paired | None:
    """Return the difference of two cells that have the same problems; else None."""
    if before.state != "filled" or after.state != "filled":
        return None
    first, second = (dict(zip(f.problems, f.values, strict=True)) for f in (before, after))
    return paired(second, first) if first.keys() == second.keys() else None
