"""Scores from a trained ensemble: deterministic, chunked.

A row's score is a function of that row alone. The posterior mean is decoded, not a sample.
Rows are computed in chunks of a fixed size, the last one padded, because a matrix product
may round a row differently in a batch of another size; in float64 where the networks
allow it, and rounded to float32 at the end, which leaves no trace of the order of summation.
Perceptrons on a CPU have a faster way in float32 (`aloof.scoring.perceptrons`), but for rows
that are too far away for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.objectives import gaussian_kl
from aloof.scoring.aggregate_prior import AggregatePrior
from aloof.scoring.chunks import RowReader, in_chunks, read_one, read_parts
from aloof.scoring.direction_penalty import DirectionPenalty
from aloof.scoring.perceptrons import Perceptrons
from aloof.vae import Ensemble, Objective, log_likelihood

__all__ = ["ScoreTerms", "Scorer", "mean_score"]

# By kind of device. On a CPU the activations of a few members stay in a core's cache; a GPU
# wants many rows at once.
_CHUNK_BYTES = {"cpu": 16 * 2**20, "cuda": 2**30}
_LARGEST_CHUNK = {"cpu": 512, "cuda": 8192}

_FILTERS = 8  # what convolutions make of an image is so much larger than the image


@dataclass(frozen=True)
class ScoreTerms:
    """What the anomaly scores of some rows are made of, each ``(members, rows)``.

    Attributes
    ----------
    reconstruction
        Minus the log-likelihood of the row, given its code.
    divergence
        Of its code from the prior, unweighted.
    penalty
        What its code is charged for lying towards labelled anomalies.
    total
        The anomaly score: reconstruction, weighted divergence and penalty.
    """

    reconstruction: NDArray[np.float64]
    divergence: NDArray[np.float64]
    penalty: NDArray[np.float64]
    total: NDArray[np.float64]


class Scorer:
    """Scores and latent codes of an ensemble.

    Parameters
    ----------
    ensemble
        Its members.
    objective
        What they were trained with; the score is the bound on normal rows.
    device
        Where to compute.
    dtype
        The networks' dtype while scoring.
    aggregate_prior
        The prior that codes are compared with; None: N(0, I).
    direction_penalty
        What lying towards the anomalies' prior costs; None: nothing.
    chunk_size
        Rows to compute at once; None: as many as suit the device.

    Attributes
    ----------
    ensemble
        The members, where and as they compute.
    objective
        As given.
    perceptrons
        The fast way to scores, where there is one.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        objective: Objective,
        *,
        device: torch.device,
        dtype: torch.dtype,
        aggregate_prior: AggregatePrior | None = None,
        direction_penalty: DirectionPenalty | None = None,
        chunk_size: int | None = None,
    ) -> None:
        wide = dtype if device.type != "mps" else torch.float32
        self.ensemble = ensemble.to(device, wide)
        self.objective = objective
        self._prior = None if aggregate_prior is None else aggregate_prior.to(device, wide)
        self._penalty = direction_penalty
        self._device = device
        self._dtype = wide
        self._size = chunk_size
        self.perceptrons: Perceptrons | None = None
        if device.type == "cpu" and chunk_size is None:
            self.perceptrons = Perceptrons.of(
                ensemble, objective, aggregate_prior, direction_penalty
            )

    def score(self, rows: RowReader, n_rows: int) -> NDArray[np.float64]:
        """Return how normal each row is: the mean over members of ELBO less penalty.

        Parameters
        ----------
        rows
            Function that returns the rows of a slice as an array ``(n, *shape)``, or as
            several: the rows and their context.
        n_rows
            How many rows there are.
        """
        return mean_score(self.member_scores(rows, n_rows))

    def member_scores(self, rows: RowReader, n_rows: int) -> NDArray[np.float64]:
        """Return each member's own score of each row, ``(members, n_rows)``."""
        if self.perceptrons is None:
            return self._wide_scores(rows, n_rows)
        scores = self.perceptrons.score(rows, n_rows)
        for row in np.flatnonzero(~np.isfinite(scores).all(0)):  # too far away for float32
            alone = partial(read_one, rows, int(row))
            scores[:, row] = self._wide_scores(alone, 1)[:, 0]
        return scores

    def _wide_scores(self, rows: RowReader, n_rows: int) -> NDArray[np.float64]:
        scores = np.empty((self.ensemble.n_members, n_rows))
        for chunk, parts, mean, log_var in self.encoded(rows, n_rows):
            total = self._reconstruction(parts, mean) + self.divergence(mean, log_var)
            scores[:, chunk] = -total[:, : chunk.stop - chunk.start].cpu().double().numpy()
        return scores

    def terms(self, rows: RowReader, n_rows: int) -> ScoreTerms:
        """Return what each member's anomaly score of each row is made of."""
        arrays = [np.empty((self.ensemble.n_members, n_rows)) for _ in range(4)]
        for chunk, parts, mean, log_var in self.encoded(rows, n_rows):
            reconstruction = self._reconstruction(parts, mean)
            divergence, penalty = self._divergence(mean, log_var), self._charge(mean)
            total = reconstruction + (self.objective.beta_kl * divergence + penalty)
            found = (reconstruction, divergence, penalty.expand_as(total), total)
            for array, part in zip(arrays, found, strict=True):
                array[:, chunk] = part[:, : chunk.stop - chunk.start].cpu().double().numpy()
        return ScoreTerms(*arrays)

    def divergence(self, mean: Tensor, log_var: Tensor) -> Tensor:
        """Return what codes are charged for where they lie, ``(members, rows)``."""
        return self.objective.beta_kl * self._divergence(mean, log_var) + self._charge(mean)

    def measure_prior(self, rows: RowReader, n_rows: int) -> AggregatePrior:
        """Return the prior that the codes of some normal rows make up."""
        parts = [
            (mean[:, : chunk.stop - chunk.start], log_var[:, : chunk.stop - chunk.start])
            for chunk, _, mean, log_var in self.encoded(rows, n_rows)
        ]
        mean, log_var = (torch.cat(part, 1).cpu().float() for part in zip(*parts, strict=True))
        return AggregatePrior(mean, log_var)

    def measure_direction(self, rows: RowReader, n_rows: int) -> DirectionPenalty:
        """Learn from normal rows what lying towards the anomalies' prior is worth."""
        means, scores = [], []
        for chunk, parts, mean, log_var in self.encoded(rows, n_rows):
            size = chunk.stop - chunk.start
            divergence = self.objective.beta_kl * gaussian_kl(mean, log_var)
            score = divergence + self._reconstruction(parts, mean)
            means.append(mean[:, :size].cpu().double())
            scores.append(score[:, :size].cpu().double())
        alpha = self.objective.alpha
        return DirectionPenalty.measure(torch.cat(means, 1), torch.cat(scores, 1), alpha)

    def latent(self, rows: RowReader, n_rows: int) -> NDArray[np.float64]:
        """Return the posterior means, ``(members, n_rows, latent_dim)``."""
        parts = [
            mean[:, : chunk.stop - chunk.start].cpu().double().numpy()
            for chunk, _, mean, _ in self.encoded(rows, n_rows)
        ]
        return np.concatenate(parts, 1)

    def encoded(
        self, rows: RowReader, n_rows: int
    ) -> Iterator[tuple[slice, list[Tensor], Tensor, Tensor]]:
        """Yield chunks with their rows, context and posterior, ``(members, size, ...)``.

        They are padded; no gradient is kept between them.
        """
        first = read_parts(rows, slice(0, 1))[0]
        size = self._size or self._chunk_size(first.shape)
        for chunk, parts in in_chunks(
            rows,
            n_rows,
            size,
            n_members=self.ensemble.n_members,
            device=self._device,
            dtype=self._dtype,
            weights=self._weights(first.shape[1:]),
        ):
            mean, log_var = self.ensemble.encode(parts)
            yield chunk, parts, mean, log_var

    def _reconstruction(self, parts: list[Tensor], mean: Tensor) -> Tensor:
        x, *context = parts
        return -log_likelihood(self.objective, x, self.ensemble.decoder(mean, *context))

    def _divergence(self, mean: Tensor, log_var: Tensor) -> Tensor:
        if self._prior is None:
            return gaussian_kl(mean, log_var)
        return self._prior.divergence(mean, log_var)

    def _charge(self, mean: Tensor) -> Tensor:
        return mean.new_zeros(()) if self._penalty is None else self._penalty.charge(mean)

    def _weights(self, shape: Sequence[int]) -> float:
        """Return how many weights a row meets, in every place of an image."""
        networks = self.ensemble.stacks.values()
        own = sum(part.numel() for stack in networks for part in stack.parameters.values())
        codes = 0 if self._prior is None else self._prior.mean.numel()
        return float(own * prod(shape[1:]) + codes)

    def _chunk_size(self, shape: Sequence[int]) -> int:
        n_codes = 0 if self._prior is None else self._prior.mean.shape[1]
        per_row = 8 * self.ensemble.n_members * max(64, prod(shape), n_codes) * 4
        kind = "cuda" if self._device.type == "cuda" else "cpu"
        if len(shape) == 4 and kind == "cpu":
            per_row *= _FILTERS
        size = 2 ** int(np.log2(max(1, _CHUNK_BYTES[kind] // per_row)))
        return int(np.clip(size, 8, _LARGEST_CHUNK[kind]))


def mean_score(members: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of members' scores ``(members, n)``, rounded to float32."""
    scores: NDArray[np.float64] = members.mean(0)
    return scores.astype(np.float32).astype(np.float64)
