"""What to run on sentences: what methods see of them, and how the recurrent VAE is trained."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from aloof.bench.methods import OURS, check_overrides, resolve_methods
from aloof.bench.specification import (
    Count,
    Names,
    Positive,
    Settings,
    Share,
    Specification,
    Weight,
    known,
)
from aloof.bench.text.corpus import DIRECTIONS
from aloof.bench.text.settings import TEXT_SETTINGS, TextSetting
from aloof.networks.sequence import Conditioning, Summary
from aloof.objectives import Reduction, Repulsion
from aloof.text import DEFAULT_EMBEDDER
from aloof.training import Precision
from aloof.vae import METHODS

__all__ = ["FEATURES", "TextSpecification"]

FEATURES = ("words", "embeddings")


def _some(value: float) -> float:
    if not 0 < value < 1:
        raise ValueError(f"must be a share between 0 and 1; got {value!r}.")
    return value


class TextSpecification(Specification):
    """Options of ``aloof bench text``.

    A number of the recurrent VAE that is not given is the setting's; one that is given counts
    in every setting.

    Attributes
    ----------
    setting
        Of the recurrent VAE: ``ours``, ``paper`` or both.
    features
        What methods see: words (a recurrent VAE, as in the paper), embeddings, or both. The
        paper has no embeddings: there are none without the setting ``ours``.
    directions
        The sentiments that are normal, one after the other.
    gamma_l
        Share of labelled anomalies.
    runs
        Splits.
    methods
        Of the recurrent VAE, those that learn from labelled anomalies; the plain VAE is always
        there.
    min_count, epochs, anomaly_epochs, annealing_epochs, batch_size, anomaly_batch_size
        See `TextSetting`.
    learning_rate, precision, word_dropout, encoder_dropout, members, hidden, latent_dim
        See `TextSetting`.
    summary, conditioning, beta_kl, alpha, gamma, beta_cubo, n_samples, repulsion, margin
        See `TextSetting`.
    reduction
        See `TextSetting`.
    compile
        See `TrainingConfig`.
    embedder
        What makes vectors of sentences.
    components
        Most principal components of them that detectors see.
    embedding_methods
        Ours, or any peer. The plain VAE and Isolation Forest look at no label.
    parameters
        Of our detectors on embeddings, such as `n_members`.
    """

    title: str = "Text: film reviews of the other sentiment"
    setting: Settings = ("ours",)
    features: Annotated[Names, AfterValidator(known("kind of features", FEATURES))] = FEATURES
    directions: Annotated[Names, AfterValidator(known("direction", DIRECTIONS))] = DIRECTIONS
    gamma_l: Annotated[float, AfterValidator(_some)] = 0.01
    runs: Count = 5
    methods: Annotated[Names, AfterValidator(known("method", METHODS))] = (
        "mml",
        "dp",
        "mml-dp",
    )
    min_count: Count | None = None
    epochs: Count | None = None
    anomaly_epochs: Count | None = None
    annealing_epochs: Count | None = None
    batch_size: Count | None = None
    anomaly_batch_size: Count | None = None
    learning_rate: Positive | None = None
    precision: Precision | None = None
    word_dropout: Share | None = None
    encoder_dropout: Share | None = None
    members: Count | None = None
    hidden: Count | None = None
    latent_dim: Count | None = None
    summary: Summary | None = None
    conditioning: Conditioning | None = None
    beta_kl: Weight | None = None
    alpha: Weight | None = None
    gamma: Weight | None = None
    beta_cubo: Weight | None = None
    n_samples: Count | None = None
    repulsion: Repulsion | None = None
    margin: float | None = None
    reduction: Reduction | None = None
    compile: bool = False
    embedder: str = DEFAULT_EMBEDDER
    components: Count = 32
    embedding_methods: Annotated[Names, AfterValidator(resolve_methods)] = (
        "vae",
        "mml",
        "dp",
        "mml-dp",
        "deep-sad",
        "iforest",
        "classifier",
    )
    parameters: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_features(self) -> TextSpecification:
        asked = "features" in self.model_fields_set and "embeddings" in self.features
        if asked and "ours" not in self.setting:
            raise ValueError(
                "The setting 'paper' has no embeddings: leave them out of features, or add "
                "the setting 'ours'."
            )
        return self

    @model_validator(mode="after")
    def _check_parameters(self) -> TextSpecification:
        for method in self.embedding_methods:
            if method in OURS:
                check_overrides(method, self.parameters)
        return self

    @property
    def embedder_name(self) -> str:
        """What the embedder is called in records."""
        return Path(self.embedder).name

    @property
    def word_methods(self) -> tuple[str, ...]:
        """The methods of the recurrent VAE, the plain one first."""
        return ("vae", *(method for method in self.methods if method != "vae"))

    def numbers(self, setting: str) -> TextSetting:
        """Return the numbers of a setting, with those that were given in their place."""
        return replace(TEXT_SETTINGS[setting], **self._given)

    def departures(self, setting: str) -> dict[str, Any]:
        """Return the numbers that were given and are not the setting's own."""
        own = TEXT_SETTINGS[setting]
        return {name: v for name, v in self._given.items() if v != getattr(own, name)}

    @property
    def _given(self) -> dict[str, Any]:
        found = {field.name: getattr(self, field.name) for field in fields(TextSetting)}
        return {name: value for name, value in found.items() if value is not None}
