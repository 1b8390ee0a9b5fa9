"""What studies of detectors on splits of tables have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from aloof.bench.methods import has_device
from aloof.bench.splits import Split
from aloof.bench.study import Group, Study, Where, Work
from aloof.bench.trials import Trial, measure
from aloof.exceptions import ExperimentError

__all__ = ["SplitCase", "SplitStudy", "feasible_splits"]


class SplitCase(Protocol):
    """A case that is run on a split."""

    @property
    def place(self) -> tuple[Any, ...]:
        """The split it is run on: the table by name, then the rest."""
        ...


_C = TypeVar("_C", bound=SplitCase)
_P = TypeVar("_P", bound=tuple[Any, ...])


class SplitStudy(Study[_C]):
    """A study whose cases are a detector and a split each.

    Attributes
    ----------
    splits
        By place.
    reasons
        By place, why there can be no such split.
    """

    splits: Mapping[Any, Split]
    reasons: Mapping[Any, str]

    @abstractmethod
    def trial(self, case: _C, *, device: str = "auto") -> Trial:
        """Return a case with its estimator and its rows."""

    def infeasible(self, case: _C) -> str | None:
        """Return what a table lacks for a case."""
        return self.reasons.get(case.place)

    def _facts(self, case: _C, sha256: str) -> dict[str, Any]:
        """Return what a record says of the rows, those of data with this digest."""
        split = self.splits[case.place]
        return {
            "data_sha256": sha256,
            "split_sha256": split.sha256,
            "n_unlabelled": len(split.train_unlabelled),
            "n_labelled": len(split.train_anomaly),
            "n_hidden": len(split.hidden),
            "n_test": len(split.test),
        }

    def _together(
        self, label: str, cases: Sequence[_C], where: Where, example: Any
    ) -> Group[_C]:
        """Return cases as a group; `example` is an estimator of one of them."""

        def prepare() -> Work:
            device = str(where.device)
            return partial(measure, [self.trial(case, device=device) for case in cases])

        here = where.device.type != "cpu" and has_device(example)
        return Group(label, tuple(cases), prepare, here)


def feasible_splits(
    places: Iterable[_P], make: Callable[[_P], Split]
) -> tuple[dict[_P, Split], dict[_P, str]]:
    """Make every split that can be; return these, and why the others cannot.

    Parameters
    ----------
    places
        Of the splits; a place begins with the name of its table.
    make
        Makes the split of a place, or raises a `ValueError`.
    """
    splits, reasons = {}, {}
    for place in places:
        try:
            splits[place] = make(place)
        except ValueError as error:
            reasons[place] = str(error)
    if not splits:
        first = {place[0]: reason for place, reason in reasons.items()}
        told = " ".join(f"{name}: {reason}" for name, reason in first.items())
        raise ExperimentError(f"None of this can run. {told}")
    return splits, reasons
