"""The image experiments as tables: ours, the baselines', the paper's figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from aloof.bench.images.paper import image_paper_figure
from aloof.bench.images.specification import (
    Detector,
    deep_peer,
    looks_at_test_labels,
    system_label,
    with_setting,
)
from aloof.bench.records import grouped
from aloof.bench.statistics import NOTE, moments, paired
from aloof.bench.tables import Grid, Line
from aloof.vae import METHODS

__all__ = ["csv_lines", "image_grids"]

_PEER = "deep-sad"
_COLUMNS = (
    "dataset",
    "method",
    "normal",
    "anomaly",
    "gamma_l",
    "gamma_p",
    "seed",
    "variant",
    "setting",
    "auroc",
    "average_precision",
    "validation_auroc",
    "validation_average_precision",
    "n_normal",
    "n_labelled",
    "n_hidden",
    "members",
    "seconds",
    "stacked",
    "device",
    "finished",
)
# By the digest of the images: what is to be known of an archive.
_NOTES = {
    "bfa753816865cb3112685df4a3144afc779fc3fec89b84c87a3f6745adfd9841": (
        "The images are CIFAR-10 encoded as JPEG of quality 75: figures may differ slightly "
        "from those of the lossless images."
    ),
    "c5588df3e4928bba2897d9c864a77757f301d1b4230211d4e27aac8a3be36884": (
        "The images are JPEG of quality 90, and 11 of the 10,000 training dogs are missing."
    ),
}
_Records = Sequence[Mapping[str, Any]]


def image_grids(
    records: _Records,
    changed: Mapping[str, Any] | None = None,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Grid]:
    """Return the tables of one image set.

    Parameters
    ----------
    records
        Whatever was run.
    changed
        Numbers of our methods in place of those of the setting, by name.
    variants
        The same of each variant.
    """
    records = list(map(with_setting, records))
    dataset = records[0]["dataset"]
    systems = list(dict.fromkeys((r["method"], r["variant"]) for r in records))
    settings = list(dict.fromkeys(r["setting"] for r in records))
    conditions = sorted({(r["gamma_p"], r["gamma_l"]) for r in records})
    groups = grouped(records, "method", "variant", "setting", "gamma_p", "gamma_l")
    columns = tuple(_condition(*condition) for condition in conditions)
    notes = [
        "AUROC in percent, mean and standard deviation over problems (normal class, class of "
        "the labelled anomalies); in brackets how many (n).",
        NOTE,
        "The paper's figures are over 90 problems with its own draws (CatsVsDogs: 2), of five "
        "members for our methods and of one for the others.",
        "In brackets whose numbers and networks: (ours), or (paper), which is the paper's for "
        "our methods and its authors' for a peer.",
    ]
    if changed:
        notes.append(f"Numbers of our methods in place of the setting's: {_said(changed)}.")
    for name, numbers in (variants or {}).items():
        notes.append(f"{name}: {_said(numbers)}, in place of the setting's.")
    notes += _detectors(records)
    digests = dict.fromkeys(record.get("data_sha256") for record in records)
    notes += [_NOTES[digest] for digest in digests if digest in _NOTES]
    rows = []
    for method, variant in systems:
        for setting in settings:
            own = [groups.get((method, variant, setting, *c), []) for c in conditions]
            if any(own):
                label = system_label(method, variant, setting)
                rows.append((label, *(_text(_values(group)) for group in own)))
        figures = [
            image_paper_figure(dataset, method, gl, gp, variant) for gp, gl in conditions
        ]
        if any(figures):
            label = f"the paper's {system_label(method, variant, '')}"
            rows.append((label, *(_figure(figure) for figure in figures)))
    grids = [
        Grid(f"{dataset}: AUROC", ("", *columns), tuple(rows), notes=tuple(notes)),
        _ensembles(dataset, systems, settings, conditions, groups),
        _t_tests(dataset, settings, conditions, groups),
    ]
    return [grid for grid in grids if grid is not None]


def _said(numbers: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in numbers.items())


def _detectors(records: _Records) -> Iterator[str]:
    """Say which systems looked at test labels, and how many images kernel methods saw."""
    unfair = {r["method"] for r in records if looks_at_test_labels(r["method"])}
    if any(map(Detector.of, unfair)):
        yield (
            "Unfair: numbers chosen with the labels of a tenth of the test images, as in the "
            "paper."
        )
    for method in sorted(name for name in unfair if deep_peer(name)):
        yield (
            f"{method}: the epoch chosen with the labels of a tenth of the test images; its "
            "authors chose with all of them."
        )
    learned: dict[int | None, dict[str, None]] = {}
    for record in records:
        detector = record.get("config", {}).get("detector", {})
        if "max_rows" in detector:
            label = system_label(record["method"], record["variant"], record["setting"])
            learned.setdefault(detector["max_rows"], {})[label] = None
    for limit, labels in learned.items():
        amount = "all" if limit is None else f"at most {limit:,}"
        yield f"{', '.join(labels)}: from {amount} normal images of each problem."


def csv_lines(records: _Records) -> Iterator[Line]:
    """Yield a line for each record."""
    for record in map(with_setting, records):
        yield {name: record.get(name, "") for name in _COLUMNS}


def _ensembles(
    dataset: str,
    systems: Sequence[tuple[str, str]],
    settings: Sequence[str],
    conditions: Sequence[tuple[float, float]],
    groups: Mapping[tuple[Any, ...], _Records],
) -> Grid | None:
    """Compare ensembles with single members."""
    rows = []
    for (method, variant), setting in product(systems, settings):
        cells = []
        for condition in conditions:
            own = [
                record
                for record in groups.get((method, variant, setting, *condition), [])
                if record["members"] > 1
            ]
            alone = [100 * float(np.mean(r["member_auroc"])) for r in own]
            together = _values(own)
            one, all_ = np.mean(alone or [np.nan]), np.mean(together or [np.nan])
            cells.append(f"{one:.1f} -> {all_:.1f}" if own else "")
        if any(cells):
            rows.append((system_label(method, variant, setting), *cells))
    if not rows:
        return None
    members = max(r["members"] for group in groups.values() for r in group)
    return Grid(
        f"{dataset}: one member -> the ensemble",
        ("", *(_condition(*condition) for condition in conditions)),
        tuple(rows),
        notes=(f"AUROC of single members, on average, and of the {members} together.",),
    )


def _t_tests(
    dataset: str,
    settings: Sequence[str],
    conditions: Sequence[tuple[float, float]],
    groups: Mapping[tuple[Any, ...], _Records],
) -> Grid | None:
    """Compare our methods with Deep SAD of the same setting, on the problems of both."""
    rows = []
    for method, setting in product(METHODS, settings):
        cells = []
        for condition in conditions:
            own, peer = (
                {(r["normal"], r["anomaly"]): 100 * r["auroc"] for r in groups.get(key, [])}
                for key in ((name, "", setting, *condition) for name in (method, _PEER))
            )
            result = paired(own, peer)
            cells.append(result.text if result.n > 1 else "")
        if any(cells):
            rows.append((system_label(method, "", setting), *cells))
    if not rows:
        return None
    header = ("", *(_condition(*condition) for condition in conditions))
    title = f"{dataset}: difference to Deep SAD"
    notes = ("Paired t-test over the problems that both were run on, in the same setting.",)
    return Grid(title, header, tuple(rows), notes=notes)


def _condition(gamma_p: float, gamma_l: float) -> str:
    return f"{gamma_l:g}" if not gamma_p else f"{gamma_l:g}, hidden {gamma_p:g}"


def _values(group: _Records) -> list[float]:
    return [100 * r["auroc"] for r in group]


def _text(values: list[float]) -> str:
    found = moments(values)
    return f"{found.text} [{found.n}]" if found.n else ""


def _figure(figure: tuple[float, float | None] | None) -> str:
    if figure is None:
        return ""
    mean, spread = figure
    return f"{mean:.1f}" if spread is None else f"{mean:.1f} ± {spread:.1f}"
