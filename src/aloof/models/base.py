"""What `aloof.load` gives, whatever it models: scores, reasons, decisions, a page, a folder."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from aloof.calibration import Threshold, p_values
from aloof.estimators import Detector, describe, from_model
from aloof.exceptions import AloofError, ModelError
from aloof.labels import ANOMALY
from aloof.models.differences import flagged_drift
from aloof.models.evaluation import Evaluation, evaluate_scores
from aloof.models.making import how_to_make
from aloof.models.results import Drift, MostAnomalous, ScoredFile, highest
from aloof.persistence import read_model, refusing, section_of, versions, write_model
from aloof.phrases import count

if TYPE_CHECKING:
    import pyarrow as pa

    from aloof.io.sections import Section

__all__ = ["Model"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Model(ABC):
    """What scores something, decides, and explains itself.

    The commands know this and nothing else. Keyword parameters of `read`, `score_file`,
    `most_anomalous`, `evaluate`, `calibrate` and `report` are the options that a command has
    for this kind of model; all others it refuses.

    Attributes
    ----------
    detector
        What scores rows of numbers. It was calibrated with what was held out, if there was
        enough.
    training
        What it was made from, as JSON can hold it.
    versions
        Of the libraries that made it.
    """

    detector: Detector
    training: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=versions)

    section: ClassVar[str | None]  # of the manifest; None: that of a detector alone
    kind: ClassVar[str]  # what is modelled, in words: "a table"
    things: ClassVar[str]  # what is scored, in the plural: "rows"
    error: ClassVar[type[AloofError]]
    # What to do in place of an option that is not for it, by the option's name.
    instead: ClassVar[Mapping[str, str]] = {}

    @property
    def threshold(self) -> Threshold:
        """The rule that decides; see `set_threshold`."""
        return self.detector.threshold_

    @property
    def title(self) -> str:
        """What it is, in words: the method and the members."""
        members = count(len(self.detector.member_seeds_), "member")
        return f"{self.detector.title} with {members}"

    @property
    def extent(self) -> str:
        """How much there was to learn from, in words that follow what was counted."""
        return ""

    @property
    def understood(self) -> list[str]:
        """How the training data was read, in words, where it needs to be said."""
        return []

    def read_otherwise(self, data: Any) -> str:
        """Say how data that `read` opened is read, where that is not as in training."""
        return ""

    @abstractmethod
    def read(self, data: Any) -> Any:
        """Open data as the other methods take it; they also take what this takes."""

    @abstractmethod
    def anomaly_score(self, data: Any) -> NDArray[np.float64]:
        """Return how anomalous each row or image is; higher is worse."""

    def p_values(self, data: Any) -> NDArray[np.float64]:
        """Return how likely a normal row or image is to look at least as anomalous as each.

        Needs calibration rows; see `docs/decisions.md`.
        """
        return p_values(self._calibration("p-values need"), self.anomaly_score(data))

    def is_anomaly(self, data: Any) -> NDArray[np.bool_]:
        """Return which are anomalies by the current `threshold`."""
        return self.decide(self.anomaly_score(data))

    def decide(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which of those that have these anomaly scores are anomalies.

        With a false discovery rate they are decided together.
        """
        return self.detector.decision_.flag(scores)

    def verdicts(
        self, scores: NDArray[np.float64], flagged: NDArray[np.bool_]
    ) -> list[dict[str, Any]]:
        """Return what scores and decisions say of each, as JSON can hold it."""
        p = self.detector.decision_.p_values(scores)
        return [
            {
                "anomaly_score": float(score),
                "p_value": None if p is None else float(p[i]),
                "is_anomaly": bool(flagged[i]),
            }
            for i, score in enumerate(scores)
        ]

    @abstractmethod
    def score(self, data: Any) -> Any:
        """Return what there is to say about each row or image."""

    @abstractmethod
    def score_file(
        self, data: Any, out: str | os.PathLike[str], *, force: bool = False
    ) -> ScoredFile:
        """Write what there is to say about each into a table."""

    def _written(
        self,
        table: pa.Table,
        out: str | os.PathLike[str],
        *,
        top: int | None,
        flagged_only: bool,
        sort: bool,
        force: bool,
        skipped: tuple[tuple[str, str], ...] = (),
    ) -> ScoredFile:
        """Write scores that are all in memory; see `aloof.models.table.streaming.score_file`.

        Parameters
        ----------
        table
            Has the columns ``anomaly_score`` and ``is_anomaly``, among others.
        out, top, flagged_only, sort, force
            As there.
        skipped
            Files that were left out, and why.
        """
        import pyarrow as pa

        from aloof.models.table.outputs import write_table
        from aloof.models.table.scores import chosen_places

        scores, remark = table["anomaly_score"].to_numpy(), ""
        if top is None:
            decision = self.detector.decision_
            remark = decision.why_none(decision.counts(scores))
        else:
            flagged = np.zeros(len(scores), bool)
            flagged[highest(scores, top, self.error)] = True
            place = table.schema.get_field_index("is_anomaly")
            table = table.set_column(place, "is_anomaly", pa.array(flagged))
        chosen = chosen_places(table, flagged_only=flagged_only, sort=sort)
        write_table(out, table.take(pa.array(chosen)), force=force)
        n_flagged = int(table["is_anomaly"].to_numpy().sum())
        return ScoredFile(len(scores), n_flagged, skipped=skipped, remark=remark)

    @abstractmethod
    def explain(self, data: Any) -> Any:
        """Return where the anomaly scores come from."""

    @abstractmethod
    def most_anomalous(self, data: Any, top: int = 20) -> MostAnomalous:
        """Return those with the highest scores, and why."""

    @abstractmethod
    def evaluate(self, data: Any) -> Evaluation:
        """Return how well scores and decisions agree with labels."""

    def _numbered(self, numbers: Sequence[int], n: int) -> NDArray[np.int64]:
        """Return the places of those that are asked for by number, from 1 on, in order."""
        one = self.things.removesuffix("s")
        for number in numbers:
            if not 1 <= number <= n:
                raise self.error(
                    f"There is no {one} {number:,}: there are {count(n, one)}, counted from 1."
                )
        return np.unique(numbers) - 1

    def _evaluation(self, labels: NDArray[np.int64], scores: NDArray[np.float64]) -> Evaluation:
        flagged = self.decide(scores)
        return evaluate_scores(
            labels, scores, flagged, threshold=str(self.threshold), things=self.things
        )

    @abstractmethod
    def calibrate(self, data: Any) -> Self:
        """Learn which scores normal things have from some that were not trained on.

        Those labelled as anomalies are left out. The rule of `threshold` stays; its level is
        taken from these from now on. Returns the model.
        """

    def _calibrated(
        self, labels: NDArray[np.int64], scores: NDArray[np.float64], call: dict[str, Any]
    ) -> Self:
        """Take scores with their labels; `call` says how to get them again."""
        if not (normal := labels != ANOMALY).any():
            raise self.error(
                f"All {self.things} are labelled as anomalies. Calibration needs normal or "
                "unlabelled ones."
            )
        self.detector._calibrate(scores, labels)
        self.training["n_calibration"] = int(normal.sum())
        self.training["calibrated"] = call
        return self

    def _flagged_drift(self, n: int, n_flagged: int) -> list[Drift]:
        """Say where more or fewer are flagged than the threshold explains."""
        labels = ("n_anomalies", "n_labelled_normal", "n_unlabelled")
        n_training = sum(self.training[name] for name in labels)
        return flagged_drift(
            n,
            n_flagged,
            self._normal_rate(),
            self.training["n_anomalies"] / max(1, n_training),
            together=self.threshold.fdr is not None,
            things=self.things,
        )

    def _normal_rate(self) -> float | None:
        """Return the share of what is normal that is flagged; None: nobody knows."""
        decision = self.detector.decision_
        if self.threshold.fdr is not None:
            return 0.0
        if decision.calibration is None:
            return self.threshold.rate
        n = len(decision.calibration)
        passed = int((decision.calibration > decision.least).sum()) / n
        return max(self.threshold.rate or passed, 1 / (n + 1))

    def set_threshold(
        self,
        *,
        share: float | None = None,
        budget: str | None = None,
        fdr: float | None = None,
        value: float | None = None,
    ) -> Self:
        """Choose how many are flagged as anomalies, without fitting again.

        Takes exactly one rule, as `aloof.VAE.set_threshold` does, and returns the model.
        """
        if fdr is not None:
            self._calibration("a false discovery rate needs")
        self.detector.set_threshold(share=share, budget=budget, fdr=fdr, value=value)
        return self

    @abstractmethod
    def report(self, data: Any, out: str | os.PathLike[str]) -> None:
        """Write what the model finds into one HTML file that opens offline."""

    def describe(self) -> dict[str, Any]:
        """Return what the model is and what it was made from, as JSON can hold it."""
        detector = self.detector
        return {
            "models": self.kind,
            "estimator": type(detector).__name__,
            "method": detector.method,
            "members": len(detector.member_seeds_),
            "threshold": {
                "rule": self.threshold.as_dict(),
                "anomaly_score": -float(detector.offset_),
            },
            "training": self.training,
            "versions": self.versions,
            "again": how_to_make(self.training, self.threshold),
        }

    def facts(self) -> list[tuple[str, str]]:
        """Return what the model is and what it was made from, in words."""
        detector, known = self.detector, self.detector.calibration_scores_
        one = self.things.removesuffix("s")
        held_out = "scored" if "calibrated" in self.training else "held out of the training"
        return [
            ("Method", f"{self.title} ({type(detector).__name__})"),
            *self._origin(),
            *self._hidden(),
            (
                "Calibrated with",
                "nothing, so there are no p-values"
                if known is None
                else f"{count(len(known), one)} {held_out}, none of them labelled as an "
                "anomaly",
            ),
            (
                "Threshold",
                f"flags {self.threshold}; to change it without training: aloof threshold",
            ),
            *self._own_facts(),
            *self._lineage(),
            (
                "Training",
                f"{count(detector.n_iter_, 'epoch')}, seed {detector.random_state}, weight of "
                f"the KL divergence {detector.beta_kl:g}",
            ),
        ]

    def _hidden(self) -> list[tuple[str, str]]:
        """Say how many rows without a label look like labelled anomalies, if any do."""
        if not (n := self.training.get("n_suspects")):
            return []
        words = (
            f"about {n:,} {self.things} without a label look like the labelled ones; they are "
            f"nobody's neighbours. To see such {self.things}: aloof review"
        )
        return [("Hidden anomalies", words)]

    def _lineage(self) -> list[tuple[str, str]]:
        """Say which version it is, and what it learned from answers."""
        if (refit := self.training.get("refit")) is None:
            return []
        words = (
            f"{self.training['version']}, refitted from {self.training['parent']} with "
            f"{count(refit['n_anomalies'], 'row')} answered as anomalies and "
            f"{refit['n_normal']:,} as normal"
            if "version" in self.training
            else "refitted with answers, and not kept as a version"
        )
        return [("Version", words)]

    def _label_counts(self) -> str:
        """Say how many there were with which label."""
        training = self.training
        return (
            f"{count(training['n_anomalies'], 'anomaly', 'anomalies')}, "
            f"{training['n_labelled_normal']:,} normal, {training['n_unlabelled']:,} without "
            "a label (treated as normal)"
        )

    def _origin(self) -> list[tuple[str, str]]:
        """Say what it was trained on."""
        return []

    def _own_facts(self) -> list[tuple[str, str]]:
        """Say what this kind of model has and others do not."""
        return []

    def _state(self) -> dict[str, Any]:
        """Return what the manifest holds in the section of the model."""
        return {}

    def _tensors(self) -> dict[str, Tensor]:
        """Return what belongs to that section and JSON cannot hold."""
        return {}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder, which `aloof.load` and the commands read.

        It is the folder of a detector with a section of its own in the manifest. The
        ``threshold`` may be edited, as there.
        """
        manifest, tensors = describe(self.detector)
        own = {} if self.section is None else {self.section: self._state()}
        more = {f"{self.section}.{name}": value for name, value in self._tensors().items()}
        write_model(path, {**manifest, **own}, {**tensors, **more})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "auto") -> Self:
        """Read a model that `save` wrote; `device` is where to score."""
        return cls.from_model(path, read_model(path), device=device)

    @classmethod
    def from_model(
        cls,
        path: str | os.PathLike[str],
        model: tuple[dict[str, Any], dict[str, Tensor]],
        *,
        device: str = "auto",
    ) -> Self:
        """Return the model of what was read from a folder."""
        manifest, tensors = model
        folder = os.fspath(path)
        if cls.section is not None and cls.section not in manifest:
            raise ModelError(
                f"{folder} does not hold a model of {cls.kind}. Open it with aloof.load, or "
                f"make a model of {cls.kind} with aloof.fit or aloof fit."
            )
        if cls.section is not None:
            section_of(cls._schema(), manifest, folder, cls.section)
        prefix = f"{cls.section}."
        own_names = [] if cls._tensors is Model._tensors else list(tensors)
        own_names = [name for name in own_names if name.startswith(prefix)]
        more = {name.removeprefix(prefix): tensors[name] for name in own_names}
        rest = {name: value for name, value in tensors.items() if name not in own_names}
        detector = from_model(path, (manifest, rest), device=device)
        own = {} if cls.section is None else manifest[cls.section]
        with refusing(folder):
            state = cls._read_state(own, detector, more)
        return cls(detector=detector, versions=dict(manifest["versions"]), **state)

    @classmethod
    def _schema(cls) -> type[Section]:
        """Return what the section of the manifest must be."""
        raise NotImplementedError

    @classmethod
    def _read_state(
        cls, state: dict[str, Any], detector: Detector, tensors: dict[str, Tensor]
    ) -> dict[str, Any]:
        """Return the fields of the model that `_state` and `_tensors` described."""
        if tensors:
            raise ValueError(f"the tensor {cls.section}.{min(tensors)} is left over")
        return {"training": dict(state["training"])}

    def _calibration(self, who: str) -> NDArray[np.float64]:
        scores = self.detector.calibration_scores_
        if scores is None:
            raise self.error(
                f"The model has no calibration {self.things}, and {who} them. Fit again with "
                f"calibration=0.2 (--calibration 0.2), or with more {self.things}."
            )
        return scores
