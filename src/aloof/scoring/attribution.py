"""Why a row has its score: what each feature contributes to it.

The reconstruction term is a sum over features by nature. The weighted KL divergence, and what
lying towards labelled anomalies adds to it, is not: it is shared out among the features that
push the row's latent code away from the prior. What a feature does there is its part of the
divergence's gradient times the step [1]_ from each member's most normal row (what it decodes
from the prior's mean) to the row in question. Features that pull the code back get nothing, so
no part of the divergence is negative, and the parts add up to it. An integral of the gradient
over the way [2]_ names the same columns first, in several times the time.

References
----------
.. [1] Shrikumar et al., "Not just a black box: learning important features through propagating
   activation differences", 2016, https://arxiv.org/abs/1605.01713.
.. [2] Sundararajan, Taly & Yan, "Axiomatic attribution for deep networks", ICML 2017,
   https://arxiv.org/abs/1703.01365.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.scoring.chunks import RowReader, read_one, read_parts
from aloof.scoring.scorer import Scorer, mean_score
from aloof.vae import Likelihood, Objective, log_likelihood

__all__ = ["Explanation", "decoded", "explain", "explain_errors", "reconstruct"]

# Contributions are rounded to this part of a row's largest, which leaves no trace of where
# in a batch the row was, as the rounding of scores does.
_GRAIN = 2.0**-30

# Codes to decode at once.
_CODES = 32

# cuDNN is switched for the whole process: one thread at a time, or it stays off.
_SWITCH = threading.Lock()


@dataclass(frozen=True)
class Explanation:
    """What every feature contributes to the anomaly scores of some rows.

    Attributes
    ----------
    reconstruction
        How badly each feature was reconstructed, ``(n, *shape)``.
    latent
        Each feature's part of the weighted KL divergence, ``(n, *shape)``.
    score
        The rows' anomaly scores, ``(n,)``: the sum of the contributions.
    expected
        What the members expected in place of each value, ``(n, *shape)``, in the units of
        the data: the mean of their reconstructions.
    """

    reconstruction: NDArray[np.float64]
    latent: NDArray[np.float64]
    score: NDArray[np.float64]
    expected: NDArray[np.float64]

    @property
    def contributions(self) -> NDArray[np.float64]:
        """Return both parts together, ``(n, *shape)``; higher is more anomalous."""
        return self.reconstruction + self.latent


def explain(scorer: Scorer, rows: RowReader, n_rows: int) -> Explanation:
    """Explain the scores of some rows.

    Parameters
    ----------
    scorer
        What gives the scores.
    rows, n_rows
        As in `Scorer.score`. What is expected is in the units of these rows.
    """
    return explain_errors(scorer, rows, n_rows)[0]


def explain_errors(
    scorer: Scorer, rows: RowReader, n_rows: int
) -> tuple[Explanation, NDArray[np.float64]]:
    """Do the same, and return the errors of `feature_errors` from the same pass."""
    if scorer.perceptrons is None:
        members, errors, *parts = _explained(scorer, rows, n_rows)
    else:
        found = scorer.perceptrons.explain(rows, n_rows)
        members, errors = found.score, found.errors
        parts = [found.reconstruction, found.latent, found.expected]
        for row in np.flatnonzero(~_finite(members, [errors, *parts])):  # too far for float32
            alone = _explained(scorer, partial(read_one, rows, int(row)), 1)
            if not np.isfinite(members[:, row].sum() + errors[row].sum()):
                errors[row] = alone[1][0]
            if not np.isfinite(members[:, row]).all():
                members[:, row] = alone[0][:, 0]
            for array, part in zip(parts, alone[2:], strict=True):
                array[row] = part[0]
    reconstruction, latent, expected = parts
    score = -mean_score(members)
    _close(score, reconstruction, latent)
    if scorer.perceptrons is None:
        _round(reconstruction, latent)
    explanation = Explanation(reconstruction, latent, score, expected)
    return explanation, errors.astype(np.float32).astype(np.float64)


def _explained(scorer: Scorer, rows: RowReader, n_rows: int) -> tuple[NDArray[np.float64], ...]:
    """Return members' scores, and means of what `ExplainedRows` has, the errors first."""
    ensemble, objective = scorer.ensemble, scorer.objective
    scores = np.empty((ensemble.n_members, n_rows))
    shape = read_parts(rows, slice(0, 1))[0].shape[1:]
    arrays = [np.empty((n_rows, *shape)) for _ in range(4)]
    for chunk, (x, *context), mean, log_var in scorer.encoded(rows, n_rows):
        size = chunk.stop - chunk.start
        output = ensemble.decoder(mean, *context)
        divergence = scorer.divergence(mean, log_var)
        total = divergence - log_likelihood(objective, x, output)
        scores[:, chunk] = -total[:, :size].cpu().double().numpy()
        wrong = x - (output[0] if isinstance(output, tuple) else output).reshape(x.shape)
        parts = (
            wrong.abs().flatten(2),
            _reconstruction_terms(objective, x, output),
            _pushing(scorer, x, context, mean) * divergence.double().unsqueeze(-1),
            _reconstructed(objective.likelihood, output).double().flatten(2).float(),
        )
        for array, part in zip(arrays, parts, strict=True):
            array[chunk] = part.mean(0)[:size].reshape(size, *shape).cpu().numpy()
    return scores, *arrays


def _finite(
    members: NDArray[np.float64], parts: Sequence[NDArray[np.float64]]
) -> NDArray[np.bool_]:
    """Return which rows have finite scores and contributions."""
    total = members.sum(0)  # of what is not finite, there is no finite sum
    for part in parts:
        total += part.sum(1)
    finite: NDArray[np.bool_] = np.isfinite(total)
    return finite


def reconstruct(scorer: Scorer, rows: RowReader, n_rows: int) -> NDArray[np.float64]:
    """Return the mean of the members' reconstructions, ``(n, *shape)``.

    Parameters
    ----------
    scorer
        Whose members reconstruct.
    rows, n_rows
        As in `Scorer.score`. What is returned is in the units of these rows.
    """
    likelihood = scorer.objective.likelihood
    expected = np.empty((n_rows, *read_parts(rows, slice(0, 1))[0].shape[1:]))
    for chunk, (x, *context), mean, _ in scorer.encoded(rows, n_rows):
        output = scorer.ensemble.decoder(mean, *context)
        output = _reconstructed(likelihood, output).reshape(x.shape)
        expected[chunk] = output.double().mean(0).float().cpu()[: chunk.stop - chunk.start]
    return expected


def decoded(scorer: Scorer, codes: Tensor | None, latent_dim: int) -> NDArray[np.float64]:
    """Return what codes ``(members, n, latent_dim)`` stand for, as the mean over members.

    None: one row, for the middle of the prior.
    """
    ensemble = scorer.ensemble
    parameter = next(iter(ensemble.decoder.parameters.values()))
    if codes is None:
        codes = parameter.new_zeros(ensemble.n_members, 1, latent_dim)
    parts = []
    with torch.no_grad():
        for start in range(0, codes.shape[1], _CODES):
            block = codes[:, start : start + _CODES].to(parameter.device, parameter.dtype)
            output = _reconstructed(scorer.objective.likelihood, ensemble.decoder(block))
            parts.append(output.double().mean(0).float().cpu().numpy())
    rows: NDArray[np.float64] = np.concatenate(parts).astype(np.float64)
    return rows


def _reconstruction_terms(objective: Objective, x: Tensor, output: Any) -> Tensor:
    """Return each feature's part of the negative log-likelihood, ``(members, rows, d)``."""
    flat = x.flatten(2)
    terms = -log_likelihood(objective, _columns(x), _columns(output)).view(flat.shape)
    return terms / flat.shape[-1] if objective.reduction == "mean" else terms


def _columns(values: Any) -> Any:
    """Make every feature a row of its own, ``(members, rows x d, 1)``."""
    if isinstance(values, tuple):
        return tuple(map(_columns, values))
    return values.double().reshape(len(values), -1, 1)


def _reconstructed(likelihood: Likelihood, output: Any) -> Tensor:
    """Return the mean of p(x|z) from the decoder's output."""
    if likelihood == "gaussian":
        mean: Tensor = output[0]
        return mean
    return torch.sigmoid(output) if likelihood == "bernoulli" else output


def _pushing(scorer: Scorer, x: Tensor, context: list[Tensor], mean: Tensor) -> Tensor:
    """Return which share of the divergence is each feature's, ``(members, rows, d)``."""
    ensemble = scorer.ensemble
    middle = torch.zeros_like(mean if context else mean[:, :1])
    origin = ensemble.decoder(middle, *context)
    origin = _reconstructed(scorer.objective.likelihood, origin)
    step = x - origin.reshape(len(x), -1, *x.shape[2:])
    with _gradients(x.device):
        point = x.clone().requires_grad_()
        divergence = scorer.divergence(*ensemble.encode([point, *context]))
        slope = torch.autograd.grad(divergence.sum(), point)[0]
    push = (slope * step).flatten(2).double().clamp(min=0.0)
    total = push.sum(-1, keepdim=True)
    return torch.where(total > 0.0, push / total, 1.0 / push.shape[-1])


@contextmanager
def _gradients(device: torch.device) -> Iterator[None]:
    """Keep gradients, also of recurrent layers, which cuDNN has none of in eval mode."""
    if device.type != "cuda":
        with torch.enable_grad():
            yield
        return
    with _SWITCH, torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        yield


def _close(
    score: NDArray[np.float64],
    reconstruction: NDArray[np.float64],
    latent: NDArray[np.float64],
) -> None:
    """Give what rounding the score took or gave to all contributions."""
    flat, other = (part.reshape(len(score), -1) for part in (reconstruction, latent))
    flat += ((score - flat.sum(1) - other.sum(1)) / flat.shape[1])[:, None]


def _round(reconstruction: NDArray[np.float64], latent: NDArray[np.float64]) -> None:
    """Leave no trace in contributions of where a row was."""
    n_rows = len(reconstruction)
    flat, other = (part.reshape(n_rows, -1) for part in (reconstruction, latent))
    largest = np.maximum(np.abs(flat), np.abs(other)).max(1, keepdims=True)
    grain = _GRAIN * 2.0 ** np.ceil(np.log2(np.maximum(largest, np.finfo(np.float64).tiny)))
    for part in (flat, other):
        np.multiply(np.rint(part / grain), grain, out=part)
