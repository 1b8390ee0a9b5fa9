"""What to run on sentences: what methods see of them, and how the recurrent VAE is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from aloof.bench.methods import OURS, check_overrides, resolve_methods
from aloof.bench.specification import Count, Names, Share, Specification, known
from aloof.bench.text.corpus import DIRECTIONS
from aloof.text import DEFAULT_EMBEDDER, SentenceNetworks
from aloof.training import Precision
from aloof.vae import METHODS, Method, Objective, TrainingConfig

__all__ = ["FEATURES", "TextSpecification"]

FEATURES = ("words", "embeddings")


def _some(value: float) -> float:
    if not 0 < value < 1:
        raise ValueError(f"must be a share between 0 and 1; got {value!r}.")
    return value


class TextSpecification(Specification):
    """Options of ``aloof bench text``.

    Attributes
    ----------
    features
        What methods see: words (a recurrent VAE, as in the paper), embeddings, or both.
    directions
        The sentiments that are normal, one after the other.
    gamma_l
        Share of labelled anomalies.
    runs
        Splits.
    methods
        Of the recurrent VAE, those that learn from labelled anomalies; the plain VAE is always
        there.
    min_count
        How often a word must be in the normal training rows to be known.
    epochs, anomaly_epochs
        On normal sentences alone, and then with labelled anomalies.
    annealing_epochs, batch_size, anomaly_batch_size, learning_rate
        Of the training.
    word_dropout, encoder_dropout
        Share of the words that the decoder, and the encoder, miss in training.
    members
        Networks of a run; its score is their mean.
    hidden, latent_dim
        Of the networks.
    beta_kl, alpha, gamma, beta_cubo, margin
        Of the objectives; `margin` is that of MML-VAE's softplus.
    precision, compile
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
    features: Annotated[Names, AfterValidator(known("kind of features", FEATURES))] = FEATURES
    directions: Annotated[Names, AfterValidator(known("direction", DIRECTIONS))] = DIRECTIONS
    gamma_l: Annotated[float, AfterValidator(_some)] = 0.01
    runs: Count = 5
    methods: Annotated[Names, AfterValidator(known("method", METHODS))] = (
        "mml",
        "dp",
        "mml-dp",
    )
    min_count: Count = 2
    epochs: Count = 120
    anomaly_epochs: Count = 5
    annealing_epochs: Count = 20
    word_dropout: Share = 0.5
    encoder_dropout: Share = 0.4
    members: Count = 1
    batch_size: Count = 128
    anomaly_batch_size: Count = 32
    learning_rate: float = 3e-3
    hidden: Count = 256
    latent_dim: Count = 32
    beta_kl: float = 0.05
    alpha: float = 5.0
    gamma: float = 1.0
    beta_cubo: float = 0.05
    margin: float = 12.0
    precision: Precision = "float32"
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

    @property
    def config(self) -> TrainingConfig:
        """The schedule of the recurrent VAE."""
        return TrainingConfig(
            max_epochs=self.epochs + self.anomaly_epochs,
            warmup_epochs=self.epochs,
            annealing_epochs=self.annealing_epochs,
            batch_size=self.batch_size,
            anomaly_batch_size=self.anomaly_batch_size,
            learning_rate=self.learning_rate,
            context_dropout=(self.encoder_dropout, self.word_dropout),
            precision=self.precision,
            compile=self.compile,
        )

    @property
    def networks(self) -> SentenceNetworks:
        """Their sizes."""
        return SentenceNetworks(self.hidden, self.latent_dim)

    def objective(self, method: str) -> Objective:
        """Return what a method minimises.

        The plain VAE is DP-VAE with anomalies of no weight: it then has a share in the
        training of normal sentences.
        """
        kind: Method = "dp" if method == "vae" else method  # type: ignore[assignment]
        return Objective(
            kind,
            beta_kl=self.beta_kl,
            alpha=self.alpha,
            gamma=0.0 if method == "vae" else self.gamma,
            beta_cubo=self.beta_cubo,
            repulsion="softplus",
            margin=self.margin,
            likelihood="categorical",
        )
