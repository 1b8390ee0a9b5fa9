"""Every table and figure of the paper, cell by cell, and which records fill a cell.

The paper's figures themselves are in `aloof.bench.images.paper`, `aloof.bench.odds.paper` and
`aloof.bench.text.tables`. Here is what is held against them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from aloof.bench.images.paper import image_paper_figures
from aloof.bench.methods import title_of
from aloof.bench.odds.paper import GAMMA_L, GAMMA_P, PaperTable, paper_figures
from aloof.bench.text.corpus import DIRECTIONS
from aloof.bench.text.tables import PAPER_IMDB
from aloof.vae import METHODS

__all__ = ["PEER", "TABLES", "Cell", "Source", "Want", "paper_cells"]

Want = tuple[Any, ...]
"""What a record must be: the values of its kind's key, see `aloof.bench.paper.kinds`."""

PEER = "peer"
"""Stands where a cell of ours has its setting: a peer's is filled by either."""

# By name, in the order of the paper.
TABLES: dict[str, str] = {
    "images": "Image sets, main table",
    "images-complete": "Image sets, complete table",
    "ensembles": "CIFAR-10, one model and ensembles of five",
    "cats-vs-dogs": "CatsVsDogs",
    "pollution": "Hidden anomalies beside 5 % of labelled ones",
    "odds": "ODDS, main table",
    "odds-complete": "ODDS, complete table",
    "ablation": "Ablation of DP-VAE",
    "ablation-complete": "Ablation of DP-VAE, complete table",
    "ill-trained": "CIFAR-10, Deep SAD after ten epochs of pre-training",
    "text": "IMDB, MML-VAE",
    "planning": "Figure: motion planning",
    "figure1": "Figure: latent spaces on thyroid",
    "cubo": "Figure: the CUBO loss of a one-dimensional Gaussian",
}


@dataclass(frozen=True)
class Source:
    """Records that can fill a cell.

    Attributes
    ----------
    label
        Which system, in which setting.
    wants
        What the records must be; there must be enough of each.
    """

    label: str
    wants: tuple[Want, ...]


@dataclass(frozen=True)
class Cell:
    """A cell of a table of the paper, in one setting.

    Attributes
    ----------
    table
        Its name.
    row
        The system.
    dataset, condition
        The column: what it was run on, and the ratio of anomalies where there are several.
    setting
        ``ours``, ``paper``, ``paper, unit`` (the same with columns in [0, 1]), or `PEER`.
    mean, std
        The paper's figure, in percent; None where it prints none.
    kind
        Of the study that fills it; empty: a picture of another command.
    sources
        What can fill it, in the order of preference.
    members
        Models of the ensemble that is meant.
    needed, whole
        Problems, seeds or runs that fill it, and that there are in the paper.
    """

    table: str
    row: str
    dataset: str
    condition: str
    setting: str
    mean: float | None
    std: float | None
    kind: str
    sources: tuple[Source, ...]
    members: int = 1
    needed: int = 10
    whole: int = 10

    @property
    def place(self) -> tuple[str, str, str, str]:
        """The cell of the paper, whatever the setting."""
        return self.table, self.row, self.dataset, self.condition

    @property
    def label(self) -> str:
        """For people."""
        setting = "" if self.setting == PEER else f" ({self.setting})"
        return " ".join(filter(None, (f"{self.row}{setting},", self.dataset, self.condition)))


def paper_cells() -> tuple[Cell, ...]:
    """Return every cell, table by table; those of ours once for each setting."""
    complete = [*_odds_ablation(), *_image_ablation()]
    short = [
        replace(cell, table="ablation") for cell in complete if cell.row in _SHORT_ABLATION
    ]
    every = [*_images(), *_odds(), *short, *complete, *_text(), *_planning(), *_pictures()]
    order = list(TABLES)
    return tuple(sorted(every, key=lambda cell: order.index(cell.table)))


_IMAGE_TABLES = {"main": "images", "complete": "images-complete"}
_SHORT_ABLATION = (
    "separate, unfreeze, 5",
    "separate, freeze, 5",
    "same, unfreeze, 5",
    "same, freeze, 5",
    "same, freeze, 1",
)
_TUNED = ("oc-svm", "ssad", "inclusive-nrf")
# SS-DGM comes in two forms; M2 is the one that the published code has for all data sets.
_FORMS = {"ss-dgm": ("ss-dgm-m2", "ss-dgm-m1-m2")}
_OF_PEERS = ("paper", "ours", "")  # as published, where it was run like that
_OURS = ("ours", "paper")
_ODDS_OURS = (("ours", "standard"), ("paper", "standard"), ("paper", "unit"))


def _systems(method: str) -> tuple[str, ...]:
    """Return what can stand for a system: what the paper chose with labels of test rows."""
    plain = method.removesuffix("-hybrid")
    if plain in _TUNED:
        return f"{method}-unfair", method
    return *_FORMS.get(method, ()), method


def _label(method: str, *details: str) -> str:
    shown = ", ".join(filter(None, details))
    return f"{method} ({shown})" if shown else method


def _image_cell(figure: Any, table: str, row: str, condition: str) -> Iterator[Cell]:
    """Yield the cells of a figure of an image table."""
    _, dataset, method, gamma_l, gamma_p, variant, members, mean, std = figure
    n_classes = 2 if dataset == "cats-vs-dogs" else 10
    pairs = n_classes * (n_classes - 1) if gamma_l or gamma_p else n_classes
    cell = Cell(
        table,
        row,
        dataset,
        condition,
        PEER,
        mean,
        std,
        "images",
        (),
        members,
        needed=n_classes,
        whole=pairs,
    )
    rest = (gamma_l, gamma_p, variant)
    if method in METHODS:
        for setting in _OURS:
            source = Source(_label(method, setting), ((dataset, method, *rest, setting),))
            yield replace(cell, setting=setting, sources=(source,))
        return
    sources = tuple(
        Source(_label(name, setting), ((dataset, name, *rest, setting),))
        for name, setting in product(_systems(method), _OF_PEERS)
    )
    yield replace(cell, sources=sources)


def _images() -> Iterator[Cell]:
    for figure in image_paper_figures():
        if figure.table == "ablation":
            continue
        row, ratio = title_of(figure.method), figure.gamma_l
        if figure.table == "ensembles":
            row += f", K = {figure.members}"
        if figure.table == "pollution":
            ratio = figure.gamma_p
        table = _IMAGE_TABLES.get(figure.table, figure.table)
        yield from _image_cell(figure, table, row, f"{ratio:g}")


def _image_ablation() -> Iterator[Cell]:
    for figure in image_paper_figures():
        if figure.table == "ablation":
            name = (figure.variant or "same-freeze").replace("-", ", ")
            row = f"{name}, {figure.members}"
            yield from _image_cell(figure, "ablation-complete", row, "")


def _odds() -> Iterator[Cell]:
    tables: tuple[tuple[str, PaperTable], ...] = (
        ("odds", "main"),
        ("odds-complete", "complete"),
    )
    for table, printed in tables:
        for method in _odds_methods():
            for dataset, (mean, std) in paper_figures(printed, method).items():
                cell = Cell(table, title_of(method), dataset, "", PEER, mean, std, "odds", ())
                yield from _odds_cell(cell, method, "")


def _odds_methods() -> tuple[str, ...]:
    from aloof.baselines import BASELINES

    return (*BASELINES, *METHODS)


def _odds_ablation() -> Iterator[Cell]:
    for encoder, decoder, members in product(
        ("separate", "same"), ("unfreeze", "freeze"), (5, 1)
    ):
        variant = f"{encoder}-{decoder}-{members}"
        for dataset, (mean, std) in paper_figures("ablation", variant).items():
            row = f"{encoder}, {decoder}, {members}"
            cell = Cell(
                "ablation-complete", row, dataset, "", PEER, mean, std, "odds", (), members
            )
            yield from _odds_cell(cell, "dp", variant)


def _odds_cell(cell: Cell, method: str, variant: str) -> Iterator[Cell]:
    """Yield the cells of a figure of an ODDS table."""

    def source(name: str, setting: str, scaling: str) -> Source:
        shown = "" if scaling == "standard" else scaling
        want = (cell.dataset, name, GAMMA_L, GAMMA_P, variant, setting, scaling)
        return Source(_label(name, setting, variant, shown), (want,))

    if method in METHODS:
        for setting, scaling in _ODDS_OURS:
            called = setting if scaling == "standard" else f"{setting}, {scaling}"
            sources = (source(method, setting, scaling),)
            yield replace(cell, setting=called, sources=sources)
        return
    # Those who published them scale columns to [0, 1].
    ways = product(_systems(method), _OF_PEERS, ("unit", "standard"))
    yield replace(cell, sources=tuple(source(*way) for way in ways))


def _text() -> Iterator[Cell]:
    for gamma_l, texts in PAPER_IMDB.items():
        method = "mml" if gamma_l else "vae"
        columns: Iterable[tuple[str, tuple[str, ...]]] = (
            *((f"{direction} normal", (direction,)) for direction in DIRECTIONS),
            ("mean", DIRECTIONS),
        )
        for (condition, directions), text in zip(columns, texts, strict=True):
            mean, std = map(float, text.split(" ± "))
            for setting in _OURS:
                wants = tuple(("words", d, method, gamma_l, setting) for d in directions)
                yield Cell(
                    "text",
                    title_of(method),
                    "imdb",
                    condition,
                    setting,
                    mean,
                    std,
                    "text",
                    (Source(_label(method, setting), wants),),
                    needed=5,
                    whole=5,
                )


def _planning() -> Iterator[Cell]:
    """Yield what the figure shows: states drawn by a VAE and by DP-VAE.

    A network draws in a hundred worlds, and there are three of each.
    """
    for method, setting in product(("vae", "dp"), _OURS):
        title = title_of(method)
        source = Source(_label(title, setting), ((title, setting),))
        yield Cell(
            "planning", title, "", "", setting, None, None, "planning", (source,), 1, 100, 300
        )


def _pictures() -> Iterator[Cell]:
    for setting in _OURS:
        source = Source(f"figure1 ({setting})", (("figure1", setting),))
        yield Cell(
            "figure1", "picture", "thyroid", "", setting, None, None, "", (source,), 1, 1, 1
        )
    source = Source("cubo", (("cubo",),))
    yield Cell("cubo", "picture", "", "", PEER, None, None, "", (source,), 1, 1, 1)
