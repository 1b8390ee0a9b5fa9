"""How long cases take on a device, from what records say of their own making."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log, prod
from statistics import median
from typing import Any, Literal

from aloof.baselines import UNFAIR, UNFAIR_GRIDS
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
# takes. A step of the CIFAR-10 network has 0.7 s on two cores with other work, and half a
# millisecond as one of 450 on an H200; small perceptrons are no faster there. For planning, two
# of the paper's networks, of a hundred cases each, took 57 minutes on a core, and four of ours
# a quarter of an hour. Text was never run on a GPU.
_GUESS = {"images": 10.0, "odds": 5.0, "text": 60.0, "planning": 4.0}
_CPU_FACTOR = {"images": 700.0, "odds": 1.0, "text": 100.0, "planning": 3.0}

# A step of a stack on a GPU takes as long as eight more networks would: 1,570 us for each of 5
# networks, 618 for each of 50.
_STEP_IN_NETWORKS = 8.0

# Systems of one family tell most of each other, unless networks are so many times larger.
_ALIKE = 8.0

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
    multiplications: float | None


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
        self._counted: dict[tuple[str, tuple[Any, ...]], float | None] = {}
        for timing in results.timings:
            own = self._samples.setdefault(timing.experiment.kind.name, [])
            own.append(_sample(timing, self._multiplications(timing.experiment, timing.want)))
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
        if kind.method(want) in UNFAIR:
            return self._tuned(experiment, want, device)
        dataset, family = kind.dataset(want), kind.family(want)
        network = kind.on_gpu(want)
        epochs, rows = _epochs(experiment, want), _rows(dataset)
        size = self._multiplications(experiment, want)

        def scaled(samples: Sequence[_Sample]) -> float:
            return median(
                s.seconds
                * _ratio(epochs, s.epochs)
                * _ratio(rows, s.rows)
                * _ratio(size, s.multiplications)
                for s in samples
            )

        alike = [s for s in every if s.family == family]
        sized = [s for s in every if s.multiplications] if size else []
        beside = [s for s in every if (s.dataset, s.network) == (dataset, network)]
        near = [s for s in alike if s.dataset == dataset]
        for found, most in ((near, _ALIKE), (alike, _ALIKE), (sized or beside, inf)):
            own = _nearest([s for s in found if s.device == device], size, most)
            if own:
                return scaled(own), "estimated"
        factor = _CPU_FACTOR[kind.name] if network else 1.0
        there = _nearest(alike, size, _ALIKE) or _nearest(sized, size) or alike
        if there:
            return scaled(there) * (factor if device == "cpu" else 1 / factor), "guessed"
        return _GUESS[kind.name] * (factor if device == "cpu" else 1.0), "guessed"

    def _multiplications(self, experiment: Experiment, want: Want) -> float | None:
        """Return those of a row in an epoch; None: they are not known."""
        key = (experiment.name, _system(experiment.kind, want))
        if key not in self._counted:
            cases = experiment.cases.get(want)
            self._counted[key] = (
                experiment.kind.multiplications(experiment.spec, cases[0]) if cases else None
            )
        return self._counted[key]

    def _tuned(
        self, experiment: Experiment, want: Want, device: DeviceKind
    ) -> tuple[float, How]:
        """Return the time of a system that is fitted anew for each try; its network is not."""
        name = experiment.kind.method(want)
        plain = name.removesuffix("-unfair")
        tries = prod(len(values) for values in UNFAIR_GRIDS[plain].values())

        def case(method: str) -> tuple[float, How]:
            other = tuple(method if value == name else value for value in want)
            return self._case(experiment, other, device)

        once, how = case(plain)
        shallow = plain.removesuffix("-hybrid")
        if plain == shallow:
            return tries * once, "estimated"
        network = case(experiment.kind.autoencoder)[0]
        # What a hybrid takes beside its network; where none was measured, the same on pixels.
        beside = max(once - network, 0.1 * once) if how == "measured" else case(shallow)[0]
        return network + tries * beside, "estimated"


def _sample(timing: Timing, multiplications: float | None) -> _Sample:
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
        multiplications,
    )


def _system(kind: Kind, want: Want) -> tuple[Any, ...]:
    """Return what makes a case as fast as another: all but the ratios of anomalies."""
    return tuple(
        value
        for name, value in zip(kind.key, want, strict=True)
        if name not in ("gamma_l", "gamma_p", "direction")
    )


def _nearest(
    samples: Sequence[_Sample], size: float | None, most: float = inf
) -> Sequence[_Sample]:
    """Return the samples whose networks are nearest in size, at most so many times apart.

    Small networks keep a GPU waiting: theirs are no measure for large ones.
    """
    if size is None:
        return samples
    apart = [(abs(log(s.multiplications / size)), s) for s in samples if s.multiplications]
    least = min((distance for distance, _ in apart), default=inf)
    return [s for distance, s in apart if distance <= min(least + log(2), log(most))]


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
