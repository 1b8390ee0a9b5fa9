"""The text experiment as a table, beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aloof.bench.methods import title_of
from aloof.bench.records import grouped
from aloof.bench.statistics import NOTE, moments
from aloof.bench.tables import Grid, Line
from aloof.bench.text.corpus import DIRECTIONS

__all__ = ["PAPER_IMDB", "csv_lines", "text_grid"]

# Its table of MML-VAE on IMDB, AUROC in %: positive normal, negative normal, mean. What follows
# ± is as printed; in the first row it may be a share.
PAPER_IMDB: Mapping[float, tuple[str, str, str]] = {
    0.0: ("52.8 ± 0.01", "60.9 ± 0.004", "56.9 ± 4.0"),
    0.01: ("56.6 ± 5.0", "64.8 ± 1.5", "60.7 ± 5.4"),
}

_FEATURES = {"words": "recurrent VAE of words", "embeddings": "sentence embeddings"}
_FIELDS = (
    "features",
    "setting",
    "method",
    "gamma_l",
    "direction",
    "run",
    "auroc",
    "average_precision",
    "auroc_reconstruction",
    "auroc_divergence",
)


def text_grid(
    records: Sequence[Mapping[str, Any]],
    metric: str = "auroc",
    *,
    departures: Mapping[str, Any] | None = None,
) -> Grid:
    """Return the table of a metric in %: a row for each system, a column for each direction.

    Parameters
    ----------
    records
        With all fields of their cases.
    metric
        ``"auroc"`` or ``"average_precision"``.
    departures
        Numbers of the setting ``paper`` that are not the paper's.
    """
    rows = []
    systems = grouped(records, "features", "setting", "gamma_l", "method")
    for (features, setting, gamma_l, method), own in systems.items():
        name = title_of(method)
        if features == "words":
            name = f"{name} ({setting})"
        rows.append((_FEATURES[features], name, f"{gamma_l:g}", *_cells(own, metric)))
    if metric == "auroc":
        for gamma_l, figures in PAPER_IMDB.items():
            name = title_of("mml" if gamma_l else "vae")
            rows.append(("published figures of the paper", name, f"{gamma_l:g}", *figures))
    n_runs = len({record["run"] for record in records})
    title = {"auroc": "AUROC (%)", "average_precision": "Average precision (%)"}[metric]
    header = ("features", "method", "gamma_l", "positive normal", "negative normal", "mean")
    notes = [
        f"{n_runs} splits 70:30 of first sentences of 5 to 20 words; mean ± standard deviation "
        "over splits, in the last column over splits and directions.",
        NOTE,
        "gamma_l: labelled anomalies, as a share of the training rows. Half of the test rows "
        "are anomalies.",
    ]
    if departures:
        changed = ", ".join(f"{name} = {value}" for name, value in departures.items())
        notes.append(f"Not the paper's, in rows of the setting paper: {changed}.")
    return Grid(title, header, tuple(rows), notes=tuple(notes))


def csv_lines(records: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    """Yield a line for each record."""
    for record in records:
        yield {name: record.get(name, "") for name in _FIELDS}


def _cells(records: Sequence[Mapping[str, Any]], metric: str) -> tuple[str, ...]:
    by_direction = [
        [100 * r[metric] for r in records if r["direction"] == direction]
        for direction in DIRECTIONS
    ]
    columns = [*by_direction, [value for own in by_direction for value in own]]
    return tuple(moments(own).text for own in columns)
