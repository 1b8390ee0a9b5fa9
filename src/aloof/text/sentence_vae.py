"""A VAE of sentences: `aloof.vae`, with the words before as context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from aloof.networks import Architecture, SentenceDecoder, SentenceEncoder
from aloof.networks.sequence import Conditioning, Summary
from aloof.scoring import RowReader, Scorer
from aloof.training import ProgressCallback
from aloof.vae import Ensemble, FitResult, Objective, TrainingConfig, VAEProblem, train

__all__ = ["SentenceNetworks", "SentenceScores", "score_sentences", "train_sentences"]

_CHUNK = 64  # sentences scored at once, always: no row's sums depend on how many there are


@dataclass(frozen=True)
class SentenceNetworks:
    """How large the networks are.

    Attributes
    ----------
    hidden
        Size of the recurrent state.
    latent_dim
        Size of the latent space.
    summary, conditioning
        What the encoder makes a code of, and when the decoder is told it; see
        `aloof.networks.sequence`.
    """

    hidden: int = 256
    latent_dim: int = 32
    summary: Summary = "mean"
    conditioning: Conditioning = "steps"

    def architecture(self, vectors: NDArray[np.floating]) -> Architecture:
        """Return what makes a member, given word vectors ``(n_words, d)``; NaN: to learn."""
        given = torch.from_numpy(np.asarray(vectors, np.float32))
        sizes: dict[str, int] = {"latent_dim": self.latent_dim, "hidden": self.hidden}
        return Architecture(
            partial(SentenceEncoder, given, **sizes, summary=self.summary),
            partial(SentenceDecoder, given, **sizes, conditioning=self.conditioning),
            self.latent_dim,
        )


@dataclass(frozen=True)
class SentenceScores:
    """What is odd about sentences: one number each, higher is worse.

    Attributes
    ----------
    reconstruction
        Minus the log-likelihood of its words, by the word or by the sentence as the objective
        says.
    divergence
        Of its code from the prior, unweighted.
    penalty
        What its code is charged for lying towards the anomalies' prior; 0 without one.
    total
        The anomaly score: the training objective and the penalty.
    """

    reconstruction: NDArray[np.float64]
    divergence: NDArray[np.float64]
    penalty: NDArray[np.float64]
    total: NDArray[np.float64]


def train_sentences(
    tokens: NDArray[np.integer],
    vectors: NDArray[np.floating],
    problems: Sequence[VAEProblem],
    config: TrainingConfig,
    *,
    networks: SentenceNetworks,
    device: torch.device,
    checkpoint: Path | None = None,
    on_epoch: ProgressCallback | None = None,
) -> list[FitResult]:
    """Train sentence VAEs, all problems stacked.

    Parameters
    ----------
    tokens
        Sentences as rows of word numbers ``(n, t)``; see `aloof.networks.sequence`.
    vectors
        One for each word, ``(n_words, d)``; rows of NaN are learned.
    problems
        What to learn, with ``likelihood="categorical"``.
    config
        The schedule; `context_dropout` has the shares of words that the encoder and the
        decoder miss.
    networks
        How large they are.
    device, checkpoint, on_epoch
        As in `aloof.vae.train`.
    """
    rows = torch.from_numpy(np.asarray(tokens, np.int64)).to(device)
    return train(
        [rows, rows, rows],
        problems,
        networks.architecture(vectors),
        config,
        device=device,
        checkpoint=checkpoint,
        on_epoch=on_epoch,
    )


def score_sentences(
    ensemble: Ensemble,
    objective: Objective,
    tokens: NDArray[np.integer],
    *,
    device: torch.device,
    dtype: torch.dtype = torch.float64,
    normal: NDArray[np.integer] | None = None,
) -> SentenceScores:
    """Score sentences, each by itself: at the mean of its posterior, over all members.

    Parameters
    ----------
    ensemble
        The members.
    objective
        What they were trained with.
    tokens
        Sentences ``(n, t)``; how far they are filled up makes no difference.
    device, dtype
        Where and in what to compute.
    normal
        Normal sentences of the training, ``(m, t)``, to measure `SentenceScores.penalty` with;
        None: it is 0.
    """
    scorer = partial(Scorer, ensemble, objective, device=device, dtype=dtype, chunk_size=_CHUNK)
    penalty = None
    if normal is not None and objective.attracts:
        penalty = scorer().measure_direction(_reader(normal), len(normal))
    terms = scorer(direction_penalty=penalty).terms(_reader(tokens), len(tokens))
    parts = (terms.reconstruction, terms.divergence, terms.penalty, terms.total)
    return SentenceScores(*(part.mean(0).astype(np.float32).astype(float) for part in parts))


def _reader(tokens: NDArray[np.integer]) -> RowReader:
    """Read sentences as in training: words, and what encoder and decoder see of them."""
    words = np.asarray(tokens, np.int64)
    return lambda rows: (words[rows], words[rows], words[rows])
