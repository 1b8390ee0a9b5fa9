"""How long cases take on a device, from what records say of their own making."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from statistics import median
from typing import Any, Literal

from aloof.baselines.unfair import UNFAIR_GRIDS
from aloof.bench.paper.cells import Want
from aloof.bench.paper.experiments import Experiment
from aloof.bench.paper.kinds import Kind, count_epochs
from aloof.bench.paper.results import Results, Timing
from aloof.datasets import PublicImages, PublicTable, find_dataset
from aloof.exceptions import DatasetError

__all__ = ["DeviceKind", "Estimate", "How", "Speeds"]

DeviceKind = Literal["cpu", "gpu"]
How = Literal["measured", "estimated", "guessed"]
"""Whether such cases were measured on such a device; others were; or nothing was there."""

_ORDER: tuple[How, ...] = ("measured", "estimated", "guessed")

# Where there is no record to go by: seconds for a case on a GPU, and how many times that a CPU
# takes. Convolutions once had 18 ms a step on two cores and 0.6 on an H200; small perceptrons
# are no faster there. For planning, two of the paper's networks, of a hundred cases each, took
# 57 minutes on a core, and two of ours half an hour.
_GUESS = {"images": 10.0, "odds": 5.0, "text": 60.0, "planning": 4.0}
_CPU_FACTOR = {"images": 30.0, "odds": 1.0, "text": 10.0, "planning": 3.0}

# A step of a stack on a GPU takes as long as eight more networks would: 1,570 us for each of 5
# networks, 618 for each of 50.
_STEP_IN_NETWORKS = 8.0

# To start a command, load the data and compile.
_START = 20.0


@dataclass(frozen=True)
class Estimate:
    """A time.

    Attributes
    ----------
    seconds
        Of all cases together.
    how
        See `How`.
    """

    seconds: float
    how: How

    @property
    def minutes(self) -> float:
        """The same in minutes."""
        return self.seconds / 60

    def __add__(self, other: Estimate) -> Estimate:
        """Return the time of both, as sure as the less sure one."""
        how = max(self.how, other.how, key=_ORDER.index)
        return Estimate(self.seconds + other.seconds, how)


@dataclass(frozen=True)
class _Sample:
    """What a case took, as its share of a stack without end."""

    dataset: str
    family: str
    system: tuple[Any, ...]
    network: bool
    device: DeviceKind
    seconds: float
    epochs: float | None
    rows: float


class Speeds:
    """Estimates from the times of records.

    Parameters
    ----------
    results
        With their timings.
    device
        Where cases would run.
    """

    def __init__(self, results: Results, device: DeviceKind) -> None:
        self.device = device
        self._samples: dict[str, list[_Sample]] = {}
        for timing in results.timings:
            own = self._samples.setdefault(timing.experiment.kind.name, [])
            own.append(_sample(timing))
        self._known: dict[tuple[str, Want], tuple[float, How]] = {}

    @property
    def start(self) -> Estimate:
        """Return what a command takes before it trains anything."""
        return Estimate(_START, "measured")

    def estimate(self, experiment: Experiment, want: Want, n_cases: int) -> Estimate:
        """Return how long so many cases of a cell take, run together."""
        key = (experiment.name, want)
        device = self._device(experiment, want)
        if key not in self._known:
            self._known[key] = self._case(experiment, want, device)
        seconds, how = self._known[key]
        members = getattr(experiment.spec, "members", None) or 1
        return Estimate(n_cases * seconds * _overhead(device, n_cases * members), how)

    def _device(self, experiment: Experiment, want: Want) -> DeviceKind:
        return self.device if experiment.kind.on_gpu(want) else "cpu"

    def _case(
        self, experiment: Experiment, want: Want, device: DeviceKind
    ) -> tuple[float, How]:
        """Return the share of one case in a stack without end, by the nearest records."""
        kind = experiment.kind
        every = self._samples.get(kind.name, [])
        here = [sample for sample in every if sample.device == device]
        system = _system(kind, want)
        same = [sample.seconds for sample in here if sample.system == system]
        if same:
            return median(same), "measured"
        if kind.method(want).endswith("-unfair"):
            return self._tuned(experiment, want, device)
        dataset, family = kind.dataset(want), kind.family(want)
        epochs = _epochs(experiment, want)

        def scaled(samples: Iterable[_Sample]) -> float:
            return median(s.seconds * _ratio(epochs, s.epochs) for s in samples)

        near = [s for s in here if (s.dataset, s.family) == (dataset, family)]
        if near:
            return scaled(near), "estimated"
        cost = _costs(here)
        other = [s for s in here if s.family == family]
        if other:
            rows = _rows(dataset)
            each = (
                s.seconds
                * _ratio(epochs, s.epochs)
                * _ratio(rows, s.rows)
                * _ratio(cost.get(dataset), cost.get(s.dataset))
                for s in other
            )
            return median(each), "estimated"
        network = kind.on_gpu(want)
        beside = [s for s in here if s.dataset == dataset and s.network == network]
        if beside:
            return scaled(beside), "estimated"
        factor = _CPU_FACTOR[kind.name] if network else 1.0
        there = [s for s in every if s.family == family and s.dataset == dataset]
        if there:
            return scaled(there) * (factor if device == "cpu" else 1 / factor), "guessed"
        return _GUESS[kind.name] * (factor if device == "cpu" else 1.0), "guessed"

    def _tuned(
        self, experiment: Experiment, want: Want, device: DeviceKind
    ) -> tuple[float, How]:
        """Return the time of a system that is fitted anew for each try; its network is not."""
        name = experiment.kind.method(want)
        plain = name.removesuffix("-unfair")
        tries = prod(len(values) for values in UNFAIR_GRIDS.get(plain, {}).values())

        def seconds(method: str) -> float:
            other = tuple(method if value == name else value for value in want)
            return self._case(experiment, other, device)[0]

        hybrid = plain.endswith("-hybrid")
        network = seconds(experiment.kind.autoencoder) if hybrid else 0.0
        once = max(seconds(plain) - network, 0.1 * seconds(plain))
        return network + tries * once, "estimated"


def _sample(timing: Timing) -> _Sample:
    kind, record = timing.experiment.kind, timing.record
    device: DeviceKind = "cpu" if record.get("device", "cpu") == "cpu" else "gpu"
    networks = record.get("stacked", 1) * record.get("members", 1)
    return _Sample(
        kind.dataset(timing.want),
        kind.family(timing.want),
        _system(kind, timing.want),
        kind.on_gpu(timing.want),
        device,
        timing.seconds / _overhead(device, networks),
        count_epochs(record.get("config")),
        float(record.get("n_normal") or record.get("n_unlabelled") or 1),
    )


def _system(kind: Kind, want: Want) -> tuple[Any, ...]:
    """Return what makes a case as fast as another: all but the ratios of anomalies."""
    return tuple(
        value
        for name, value in zip(kind.key, want, strict=True)
        if name not in ("gamma_l", "gamma_p", "direction")
    )


def _costs(samples: Iterable[_Sample]) -> dict[str, float]:
    """Return what a row and epoch of each data set costs, by those of our own methods."""
    own: dict[str, list[float]] = {}
    for sample in samples:
        if sample.family == "ours" and sample.epochs:
            per_row = sample.seconds / sample.epochs / sample.rows
            own.setdefault(sample.dataset, []).append(per_row)
    return {name: median(values) for name, values in own.items()}


def _ratio(wanted: float | None, found: float | None) -> float:
    """Return the ratio of two numbers; 1 where one of them is not known."""
    return wanted / found if wanted and found else 1.0


def _overhead(device: DeviceKind, networks: float) -> float:
    return 1 + _STEP_IN_NETWORKS / networks if device == "gpu" else 1.0


def _epochs(experiment: Experiment, want: Want) -> float | None:
    cases = experiment.cases.get(want)
    return experiment.kind.epochs(experiment.spec, cases[0]) if cases else None


def _rows(dataset: str) -> float | None:
    """Return how many normal rows a case learns from, roughly."""
    try:
        images = find_dataset(dataset, PublicImages)
        return 0.8 * images.n_train / len(images.classes)
    except DatasetError:
        pass
    try:
        return 0.6 * find_dataset(dataset, PublicTable).n_rows
    except DatasetError:
        return None
