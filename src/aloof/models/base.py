"""What `aloof.load` gives, whatever it models: scores, reasons, decisions, a page, a folder."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from aloof.calibration import Threshold, p_values
from aloof.estimators import Detector, describe, from_model
from aloof.exceptions import AloofError, ModelError
from aloof.labels import ANOMALY
from aloof.models.evaluation import Evaluation, evaluate_scores
from aloof.models.making import how_to_make
from aloof.models.results import MostAnomalous, ScoredFile
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
        force: bool,
        skipped: tuple[tuple[str, str], ...] = (),
    ) -> ScoredFile:
        """Write scores that are all in memory; see `aloof.models.table.check_output`."""
        from aloof.models.table.outputs import write_table

        write_table(out, table, force=force)
        flagged = table["is_anomaly"].to_numpy()
        return ScoredFile(len(flagged), int(flagged.sum()), skipped=skipped)

    @abstractmethod
    def explain(self, data: Any) -> Any:
        """Return where the anomaly scores come from."""

    @abstractmethod
    def most_anomalous(self, data: Any, top: int = 20) -> MostAnomalous:
        """Return those with the highest scores, and why."""

    @abstractmethod
    def evaluate(self, data: Any) -> Evaluation:
        """Return how well scores and decisions agree with labels."""

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
        self.detector._calibrate(scores[normal])
        self.training["n_calibration"] = int(normal.sum())
        self.training["calibrated"] = call
        return self

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
            (
                "Training",
                f"{count(detector.n_iter_, 'epoch')}, seed {detector.random_state}, weight of "
                f"the KL divergence {detector.beta_kl:g}",
            ),
        ]

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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder, which `aloof.load` and the commands read.

        It is the folder of a detector with a section of its own in the manifest. The
        ``threshold`` may be edited, as there.
        """
        manifest, tensors = describe(self.detector)
        own = {} if self.section is None else {self.section: self._state()}
        write_model(path, {**manifest, **own}, tensors)

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
        manifest, _ = model
        folder = os.fspath(path)
        if cls.section is not None and cls.section not in manifest:
            raise ModelError(
                f"{folder} does not hold a model of {cls.kind}. Open it with aloof.load, or "
                f"make a model of {cls.kind} with aloof.fit or aloof fit."
            )
        if cls.section is not None:
            section_of(cls._schema(), manifest, folder, cls.section)
        detector = from_model(path, model, device=device)
        own = {} if cls.section is None else manifest[cls.section]
        with refusing(folder):
            state = cls._read_state(own, detector)
        return cls(detector=detector, versions=dict(manifest["versions"]), **state)

    @classmethod
    def _schema(cls) -> type[Section]:
        """Return what the section of the manifest must be."""
        raise NotImplementedError

    @classmethod
    def _read_state(cls, state: dict[str, Any], detector: Detector) -> dict[str, Any]:
        """Return the fields of the model that `_state` described."""
        return {"training": dict(state["training"])}

    def _calibration(self, who: str) -> NDArray[np.float64]:
        scores = self.detector.calibration_scores_
        if scores is None:
            raise self.error(
                f"The model has no calibration {self.things}, and {who} them. Fit again with "
                f"calibration=0.2 (--calibration 0.2), or with more {self.things}."
            )
        return scores
