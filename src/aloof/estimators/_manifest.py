"""What the manifest says of a detector."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from aloof.calibration import Threshold
from aloof.io.sections import Count, Section, Text

__all__ = ["CommitteeSection", "DetectorManifest", "EditedThreshold", "SavedThreshold"]


def _readable(rule: dict[str, Any]) -> dict[str, Any]:
    Threshold.from_dict(rule)
    return rule


def _complete(versions: dict[str, str]) -> dict[str, str]:
    if "aloof" not in versions:
        raise ValueError("there is none of aloof")
    return versions


_Rule = Annotated[dict[str, Any], AfterValidator(_readable)]
_Size = Annotated[int, Field(ge=1, lt=2**63)]


class SavedThreshold(Section):
    """How many rows are anomalies: a rule, and the anomaly score it led to."""

    anomaly_score: float
    rule: _Rule


class EditedThreshold(Section):
    """The same, as somebody left it: without the rule, the score decides."""

    anomaly_score: float
    rule: _Rule | None = None


class DetectorManifest(Section, extra="ignore"):
    """All there is to a detector beside its tensors; other keys are other sections.

    Attributes
    ----------
    estimator, method
        Its class, and the class's method.
    parameters
        Of the constructor; each is checked as in ``fit``.
    custom_networks
        Whether its networks are the user's own.
    n_features_in, shape, feature_names_in
        Of the rows.
    member_seeds
        One for each member.
    scoring_dtype
        What to compute scores in.
    probe
        Scores of two fixed rows.
    threshold, threshold_as_saved
        The former may be edited by hand.
    versions
        What it was written with.
    """

    estimator: Text
    method: Text
    parameters: dict[str, Any]
    custom_networks: bool
    n_features_in: _Size
    shape: Annotated[list[_Size], Field(min_length=1)]
    feature_names_in: list[Text] | None
    member_seeds: Annotated[list[Count], Field(min_length=1)]
    scoring_dtype: Literal["float32", "float64"]
    probe: Annotated[list[float], Field(min_length=2, max_length=2)]
    threshold: EditedThreshold
    threshold_as_saved: SavedThreshold
    versions: Annotated[dict[Text, Text], AfterValidator(_complete)]

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.n_features_in != self.shape[0]:
            raise ValueError("n_features_in is not the first number of shape")
        names = self.feature_names_in
        if names is not None and len(names) != self.n_features_in:
            raise ValueError("feature_names_in are not n_features_in names")
        if not self.custom_networks:
            if len(self.shape) not in (1, 3):
                raise ValueError("shape is neither that of rows nor of images")
            if self.scoring_dtype != "float64":
                raise ValueError("scoring_dtype is not float64")
        return self


class CommitteeSection(Section):
    """What a committee has beside a detector; its views are detectors of their own.

    Attributes
    ----------
    tree_weight
        How much trees count.
    hidden_share
        Of rows without a label that look like labelled anomalies.
    views
        What their own manifests would say, by name.
    """

    tree_weight: Annotated[float, Field(ge=0, le=1)]
    hidden_share: Annotated[float, Field(ge=0, le=1)]
    views: dict[Text, dict[str, Any]]
