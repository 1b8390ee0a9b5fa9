"""The kinds of studies that fill cells: what has to be known of each, without its data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

from aloof.bench.identity import Identity
from aloof.bench.paper.cells import Want
from aloof.bench.records import Record
from aloof.bench.revisions import revision
from aloof.bench.specification import SETTINGS
from aloof.bench.study import Study
from aloof.vae import METHODS

__all__ = ["KINDS", "Fields", "Kind", "count_epochs"]

Fields = Mapping[str, Any]
"""A case by the names of its fields."""

_WORD_VECTOR = 100  # numbers of a word, of GloVe's


def count_epochs(config: Any) -> float | None:
    """Return the epochs of all phases that a configuration names; None where it names none.

    Examples
    --------
    >>> count_epochs({"baseline": {"max_epochs": 150, "pretrain_epochs": 10}})
    160.0
    """
    if not isinstance(config, Mapping):
        return None
    own = sum(config.get(name) or 0 for name in ("max_epochs", "pretrain_epochs"))
    return float(own + sum(count_epochs(value) or 0 for value in config.values())) or None


class Kind(ABC):
    """A kind of studies.

    Attributes
    ----------
    name
        That of its command.
    key
        The fields that tell which cell a case belongs to. The others number its replicates.
    configured
        The others that a configuration names.
    options
        The fields that a command can be narrowed to: the option's name, and the field's.
    stretch
        Options that may be given beside a file, for cells that no file names.
    autoencoder
        What hybrids take their codes from.
    in_parts
        Whether a part of a cell takes a part of its time.
    """

    name: ClassVar[str]
    key: ClassVar[tuple[str, ...]]
    configured: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, str]]
    stretch: ClassVar[Mapping[str, tuple[str, ...]]] = {"setting": SETTINGS}
    autoencoder: ClassVar[str] = "autoencoder"
    in_parts: ClassVar[bool] = True

    @property
    @abstractmethod
    def specification(self) -> type[Any]:
        """The options of its studies."""

    @property
    @abstractmethod
    def case_type(self) -> type[Any]:
        """What identifies its records."""

    @abstractmethod
    def cases(self, spec: Any) -> Iterator[Fields]:
        """Yield what a specification asks for and a table of the paper could hold."""

    @abstractmethod
    def identity(self, spec: Any, case: Fields) -> Identity | None:
        """Return what a case depends on beside its rows; None: that takes the data."""

    @abstractmethod
    def make(self, spec: Any) -> Study[Any]:
        """Load the data and return the study."""

    def fields(self, record: Record) -> dict[str, Any]:
        """Return the case of a record; what an older one lacks has its default."""
        defaults = {field.name: field.default for field in fields(self.case_type)}
        return {name: record.get(name, default) for name, default in defaults.items()}

    def want(self, case: Fields) -> Want:
        """Return which cells a case belongs to."""
        return tuple(case[name] for name in self.key)

    def replicate(self, case: Fields) -> tuple[Any, ...]:
        """Return which of the replicates of its cell a case is."""
        return tuple(case[f.name] for f in fields(self.case_type) if f.name not in self.key)

    def dataset(self, want: Want) -> str:
        """Return what a case was run on."""
        return str(want[0])

    def method(self, want: Want) -> str:
        """Return the system of a case."""
        return str(want[self.key.index("method")])

    def on_gpu(self, want: Want) -> bool:
        """Return whether a GPU is of use to a case."""
        return True

    def family(self, want: Want) -> str:
        """Return what a case has its speed in common with."""
        return self.method(want)

    def value(self, record: Record, members: int) -> float | None:
        """Return the figure of a record, in percent; None: it has none of so many members."""
        return 100 * float(record["auroc"])

    def shares(self, records: Sequence[Record]) -> list[float | None]:
        """Return how long each record took, its share where several were run together."""
        return [None for _ in records]

    def epochs(self, spec: Any, case: Fields) -> float | None:
        """Return the epochs of all phases of a case; None where there are none."""
        identity = self.identity(spec, case)
        return None if identity is None else count_epochs(identity.record["config"])

    def multiplications(self, spec: Any, case: Fields) -> float | None:
        """Return about how many a row takes in an epoch, in all members; None: not known.

        As far as they tell how long one case takes when another's time is known.
        """
        return None

    def belongs(self, spec: Any, record: Record) -> bool:
        """Return whether a record can be of an experiment."""
        return True


class _Images(Kind):
    name = "images"
    autoencoder = "cae"
    key = ("dataset", "method", "gamma_l", "gamma_p", "variant", "setting")
    options: ClassVar[Mapping[str, str]] = {
        "methods": "method",
        "gamma_l": "gamma_l",
        "gamma_p": "gamma_p",
        "setting": "setting",
    }

    @property
    def specification(self) -> type[Any]:
        from aloof.bench.images import ImageSpecification

        return ImageSpecification

    @property
    def case_type(self) -> type[Any]:
        from aloof.bench.images import ImageCase

        return ImageCase

    def fields(self, record: Record) -> dict[str, Any]:
        from aloof.bench.images.specification import with_setting

        return super().fields(with_setting(record))

    def cases(self, spec: Any) -> Iterator[Fields]:
        from aloof.datasets import PublicImages, find_dataset

        n_classes = len(find_dataset(spec.dataset, PublicImages).classes)
        yield from map(asdict, spec.cases(n_classes))

    def identity(self, spec: Any, case: Fields) -> Identity:
        from aloof.bench.images.systems import configuration

        config = configuration(spec, self.case_type(**case))
        return Identity(config, revision=revision(case["method"], images=True))

    def make(self, spec: Any) -> Study[Any]:
        from aloof.bench.images import make_images

        return make_images(spec)

    def on_gpu(self, want: Want) -> bool:
        from aloof.bench.images.specification import is_shallow

        return not is_shallow(self.method(want))

    def family(self, want: Want) -> str:
        from aloof.baselines import UNFAIR
        from aloof.bench.images.systems import family

        own = family(self.method(want))
        # To choose an epoch by test labels takes no time.
        return own if own in UNFAIR else own.removesuffix("-unfair")

    def value(self, record: Record, members: int) -> float | None:
        if record["members"] == members:
            return 100 * float(record["auroc"])
        if members > 1:
            return None
        return 100 * sum(record["member_auroc"]) / len(record["member_auroc"])

    def shares(self, records: Sequence[Record]) -> list[float | None]:
        return [record.get("seconds") for record in records]

    def multiplications(self, spec: Any, case: Fields) -> float | None:
        from aloof.bench.images.systems import count_case_multiplications

        return count_case_multiplications(spec, self.case_type(**case))

    def belongs(self, spec: Any, record: Record) -> bool:
        return bool(record["dataset"] == spec.dataset)


class _Odds(Kind):
    name = "odds"
    key = ("dataset", "method", "gamma_l", "gamma_p", "variant", "setting", "scaling")
    options: ClassVar[Mapping[str, str]] = {
        "datasets": "dataset",
        "methods": "method",
        "setting": "setting",
        "scaling": "scaling",
    }
    stretch: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "setting": SETTINGS,
        "scaling": ("standard", "unit"),
    }

    @property
    def specification(self) -> type[Any]:
        from aloof.bench.odds import OddsSpecification

        return OddsSpecification

    @property
    def case_type(self) -> type[Any]:
        from aloof.bench.odds import Case

        return Case

    def cases(self, spec: Any) -> Iterator[Fields]:
        for (gamma_l, gamma_p), system, dataset, seed in product(
            spec.conditions, spec.systems, spec.datasets, range(spec.seeds)
        ):
            drawn = {"gamma_l": gamma_l, "gamma_p": gamma_p, "seed": seed}
            yield {"dataset": dataset, **asdict(system), **drawn}

    def identity(self, spec: Any, case: Fields) -> Identity:
        from aloof.bench.odds import OddsStudy

        bare = OddsStudy(spec, tables={}, splits={}, reasons={}, cases=())
        return Identity(
            bare.estimator(self.case_type(**case)), revision=revision(case["method"])
        )

    def make(self, spec: Any) -> Study[Any]:
        from aloof.bench.odds import make_odds

        return make_odds(spec)

    def on_gpu(self, want: Want) -> bool:
        return _has_networks(self.method(want))

    def family(self, want: Want) -> str:
        method = self.method(want)
        return "ours" if method in METHODS else method

    def shares(self, records: Sequence[Record]) -> list[float | None]:
        return [
            r["fit_seconds"] + r.get("score_seconds", 0.0) if "fit_seconds" in r else None
            for r in records
        ]


class _Text(Kind):
    name = "text"
    key = ("features", "direction", "method", "gamma_l", "setting")
    options: ClassVar[Mapping[str, str]] = {"features": "features", "setting": "setting"}

    @property
    def specification(self) -> type[Any]:
        from aloof.bench.text import TextSpecification

        return TextSpecification

    @property
    def case_type(self) -> type[Any]:
        from aloof.bench.text.study import TextCase

        return TextCase

    def cases(self, spec: Any) -> Iterator[Fields]:
        for setting, direction, run, method in product(
            spec.setting, spec.directions, range(spec.runs), spec.word_methods
        ):
            yield {
                "features": "words",
                "embedder": "",
                "direction": direction,
                "run": run,
                "method": method,
                "gamma_l": spec.gamma_l if method != "vae" else 0.0,
                "setting": setting,
            }

    def identity(self, spec: Any, case: Fields) -> None:
        return None

    def epochs(self, spec: Any, case: Fields) -> float | None:
        numbers = spec.numbers(case["setting"])
        return float(numbers.epochs + numbers.anomaly_epochs)

    def multiplications(self, spec: Any, case: Fields) -> float:
        """Return those of two recurrent layers; how many words there are is not known here."""
        numbers = spec.numbers(case["setting"])
        return float(numbers.members * 8 * numbers.hidden * (numbers.hidden + _WORD_VECTOR))

    def make(self, spec: Any) -> Study[Any]:
        from aloof.bench.text import make_text, read_reviews
        from aloof.datasets import data_folder

        folder = data_folder()
        corpus = read_reviews(
            folder / "imdb" / "imdb.csv.gz", folder / "glove" / "glove.6B.100d.txt.gz"
        )
        return make_text(spec, corpus)

    def dataset(self, want: Want) -> str:
        return "imdb"

    def family(self, want: Want) -> str:
        return str(want[0])

    def shares(self, records: Sequence[Record]) -> list[float | None]:
        # A stack takes a time of its own, to the last digit.
        stacked = Counter(record.get("seconds_of_all") for record in records)
        return [
            None if (seconds := r.get("seconds_of_all")) is None else seconds / stacked[seconds]
            for r in records
        ]


class _Planning(Kind):
    name = "planning"
    in_parts = False  # all worlds are drawn in by the same few networks
    key = ("sampler", "setting")
    configured = ("seed",)
    options: ClassVar[Mapping[str, str]] = {"setting": "setting"}

    @property
    def specification(self) -> type[Any]:
        from aloof.bench.planning import PlanningSpecification

        return PlanningSpecification

    @property
    def case_type(self) -> type[Any]:
        from aloof.bench.planning import PlanningCase

        return PlanningCase

    def cases(self, spec: Any) -> Iterator[Fields]:
        yield from map(asdict, self.make(spec).cases)

    def identity(self, spec: Any, case: Fields) -> Identity:
        return self.make(spec).identity(self.case_type(**case))

    def make(self, spec: Any) -> Study[Any]:
        from aloof.bench.planning import make_planning

        return make_planning(spec)

    def dataset(self, want: Want) -> str:
        return ""

    def method(self, want: Want) -> str:
        return str(want[0])

    def family(self, want: Want) -> str:
        return ""

    def value(self, record: Record, members: int) -> float | None:
        return 100 * float(record["collision"])


KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (_Images(), _Odds(), _Text(), _Planning())
}


@lru_cache
def _has_networks(method: str) -> bool:
    from aloof.bench.methods import OURS, has_device, peers

    plain = method.removesuffix("-unfair")
    return method in OURS or has_device(peers()[plain]())
