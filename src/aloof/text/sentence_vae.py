"""A VAE of sentences: the library's one loop, with the words before as context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.lean import Lean
from aloof.networks import Architecture, SentenceDecoder, SentenceEncoder
from aloof.objectives import gaussian_kl
from aloof.training import (
    Ensemble,
    FitResult,
    Objective,
    Problem,
    ProgressCallback,
    TrainingConfig,
    log_likelihood,
    train,
)

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
    """

    hidden: int = 256
    latent_dim: int = 32

    def architecture(self, vectors: NDArray[np.floating]) -> Architecture:
        """Return what makes a member, given word vectors ``(n_words, d)``; NaN: to learn."""
        given = torch.from_numpy(np.asarray(vectors, np.float32))
        sizes = {"latent_dim": self.latent_dim, "hidden": self.hidden}
        return Architecture(
            partial(SentenceEncoder, given, **sizes),
            partial(SentenceDecoder, given, **sizes),
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
    total
        The training objective: reconstruction plus the weighted divergence.
    lean
        What leaning towards the anomalies' prior is charged; 0 without one.
    """

    reconstruction: NDArray[np.float64]
    divergence: NDArray[np.float64]
    total: NDArray[np.float64]
    lean: NDArray[np.float64]


def train_sentences(
    tokens: NDArray[np.integer],
    vectors: NDArray[np.floating],
    problems: Sequence[Problem],
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
        As in `aloof.training.train`.
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
        Normal sentences of the training, ``(m, t)``, to measure `SentenceScores.lean` with;
        None: it is 0.
    """
    ensemble = ensemble.to(device, dtype)
    lean = None
    if normal is not None and objective.attracts:
        codes, reconstruction, divergence = _each(ensemble, objective, normal, device)
        usual = reconstruction + objective.beta_kl * divergence
        lean = Lean.measure(codes, usual, objective.alpha)
    codes, reconstruction, divergence = _each(ensemble, objective, tokens, device)
    charge = torch.zeros_like(divergence) if lean is None else lean.charge(codes)
    total = reconstruction + objective.beta_kl * divergence
    parts = (reconstruction, divergence, total, charge)
    return SentenceScores(*(part.mean(0).float().double().numpy() for part in parts))


def _each(
    ensemble: Ensemble,
    objective: Objective,
    tokens: NDArray[np.integer],
    device: torch.device,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return codes ``(members, n, latent_dim)``, reconstruction and divergence of each."""
    parts = []
    for start in range(0, len(tokens), _CHUNK):
        block = np.asarray(tokens[start : start + _CHUNK], np.int64)
        padded = np.zeros((_CHUNK, tokens.shape[1]), np.int64)
        padded[: len(block)] = block
        x = torch.from_numpy(padded).to(device).expand(ensemble.n_members, -1, -1)
        with torch.no_grad():
            mean, log_var = ensemble.encode([x])
            error = -log_likelihood(objective, x, ensemble.decoder(mean, x))
            found = (mean, error, gaussian_kl(mean, log_var))
        parts.append([part[:, : len(block)].cpu().double() for part in found])
    codes, reconstruction, divergence = (torch.cat(p, 1) for p in zip(*parts, strict=True))
    return codes, reconstruction, divergence
