"""Scores from a trained ensemble: deterministic, chunked, float64.

A row's score is a function of that row alone. The posterior mean is decoded, not a sample.
Rows are computed in chunks of a fixed size, the last one padded, because a matrix product
may round a row differently in a batch of another size; in float64 where the networks
allow it, and rounded to float32 at the end, which leaves no trace of the order of summation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.lean import Lean
from aloof.objectives import gaussian_kl
from aloof.references import References
from aloof.training import Ensemble, Objective, log_likelihood
from aloof.training.device import on

__all__ = ["RowReader", "Scorer"]

# By kind of device. On a CPU the activations of a few members stay in a core's cache; a GPU
# wants many rows at once.
_CHUNK_BYTES = {"cpu": 16 * 2**20, "cuda": 2**30}
_LARGEST_CHUNK = {"cpu": 512, "cuda": 8192}

_FILTERS = 8  # what convolutions make of an image is so much larger than the image

RowReader = Callable[[slice], NDArray[np.floating]]


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
    references
        The prior that codes are compared with; None: N(0, I).
    lean
        What leaning towards the anomalies' prior costs; None: nothing.

    Attributes
    ----------
    ensemble
        The members, where and as they compute.
    objective
        As given.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        objective: Objective,
        *,
        device: torch.device,
        dtype: torch.dtype,
        references: References | None = None,
        lean: Lean | None = None,
    ) -> None:
        wide = dtype if device.type != "mps" else torch.float32
        self.ensemble = ensemble.to(device, wide)
        self.objective = objective
        self._references = None if references is None else references.to(device, wide)
        self._lean = lean
        self._device = device
        self._dtype = wide

    def score(self, rows: RowReader, n_rows: int) -> NDArray[np.float64]:
        """Return how normal each row is: the mean over members of ELBO less lean.

        Parameters
        ----------
        rows
            Function that returns the rows of a slice as an array ``(n, *shape)``.
        n_rows
            How many rows there are.
        """
        scores: NDArray[np.float64] = self.member_scores(rows, n_rows).mean(0)
        return scores.astype(np.float32).astype(np.float64)

    def member_scores(self, rows: RowReader, n_rows: int) -> NDArray[np.float64]:
        """Return each member's own score of each row, ``(members, n_rows)``."""
        scores = np.empty((self.ensemble.n_members, n_rows), np.float64)
        for chunk, x, mean, log_var in self.encoded(rows, n_rows):
            output = self.ensemble.decoder(mean)
            likelihood = log_likelihood(self.objective, x, output)
            score = likelihood - self.divergence(mean, log_var)
            scores[:, chunk] = score.cpu().double().numpy()[:, : chunk.stop - chunk.start]
        return scores

    def divergence(self, mean: Tensor, log_var: Tensor) -> Tensor:
        """Return what codes are charged for where they lie, ``(members, rows)``."""
        if self._references is None:
            divergence = gaussian_kl(mean, log_var)
        else:
            divergence = self._references.divergence(mean, log_var)
        weighted = self.objective.beta_kl * divergence
        return weighted if self._lean is None else weighted + self._lean.charge(mean)

    def refer_to(self, rows: RowReader, n_rows: int) -> References:
        """Return the codes of some normal rows."""
        parts = [
            (mean[:, : chunk.stop - chunk.start], log_var[:, : chunk.stop - chunk.start])
            for chunk, _, mean, log_var in self.encoded(rows, n_rows)
        ]
        mean, log_var = (torch.cat(part, 1).cpu().float() for part in zip(*parts, strict=True))
        return References(mean, log_var)

    def measure_lean(self, rows: RowReader, n_rows: int) -> Lean:
        """Learn from normal rows what leaning towards the anomalies' prior is worth."""
        means, scores = [], []
        for chunk, x, mean, log_var in self.encoded(rows, n_rows):
            size = chunk.stop - chunk.start
            likelihood = log_likelihood(self.objective, x, self.ensemble.decoder(mean))
            score = self.objective.beta_kl * gaussian_kl(mean, log_var) - likelihood
            means.append(mean[:, :size].cpu().double())
            scores.append(score[:, :size].cpu().double())
        return Lean.measure(torch.cat(means, 1), torch.cat(scores, 1), self.objective.alpha)

    def latent(self, rows: RowReader, n_rows: int) -> NDArray[np.float64]:
        """Return the posterior means, ``(members, n_rows, latent_dim)``."""
        parts = [
            mean[:, : chunk.stop - chunk.start].cpu().double().numpy()
            for chunk, _, mean, _ in self.encoded(rows, n_rows)
        ]
        return np.concatenate(parts, 1)

    def encoded(
        self, rows: RowReader, n_rows: int
    ) -> Iterator[tuple[slice, Tensor, Tensor, Tensor]]:
        """Yield chunks with their rows and posterior, ``(members, size, ...)``, padded.

        No gradient is kept between the chunks.
        """
        members = self.ensemble.n_members
        size = self._chunk_size(rows(slice(0, 1)))
        for start in range(0, n_rows, size):
            stop = min(start + size, n_rows)
            block = rows(slice(start, stop))
            padded = np.zeros((size, *block.shape[1:]), block.dtype)
            padded[: len(block)] = block
            x = torch.from_numpy(padded).to(self._device, self._dtype)
            x = x.expand(members, *x.shape)
            with torch.no_grad(), on(self._device):
                mean, log_var = self.ensemble.encode([x])
                yield slice(start, stop), x, mean, log_var

    def _chunk_size(self, row: NDArray[np.floating]) -> int:
        n_references = 0 if self._references is None else self._references.mean.shape[1]
        per_row = 8 * self.ensemble.n_members * max(64, row.size, n_references) * 4
        kind = "cuda" if self._device.type == "cuda" else "cpu"
        if row.ndim == 4 and kind == "cpu":
            per_row *= _FILTERS
        size = 2 ** int(np.log2(max(1, _CHUNK_BYTES[kind] // per_row)))
        return int(np.clip(size, 8, _LARGEST_CHUNK[kind]))
