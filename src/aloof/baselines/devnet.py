"""DevNet: scores that deviate from a Gaussian reference only on anomalies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.baselines.contract import LabelUse, NetworkBaseline
from aloof.baselines.fitting import CPU, balanced, built, evaluate, fit
from aloof.baselines.networks import perceptron
from aloof.labels import ANOMALY
from aloof.training.seeds import Stream, derive, generator

__all__ = ["DevNet", "deviation_loss"]

_MARGIN = 5.0  # in standard deviations of the reference scores
_N_REFERENCES = 5000


def deviation_loss(scores: Tensor, is_anomaly: Tensor, reference: Tensor) -> Tensor:
    r"""Return the per-row deviation loss.

    .. math:: (1 - y)\,|d| + y \max(0, 5 - d), \quad
        d = (s - \mu_R) / \sigma_R

    Parameters
    ----------
    scores
        The network's scores s, ``(n,)``. DeepOD passes ``(n, 1)`` here, which broadcasts
        against the labels to ``(n, n)``; PyOD swaps the first two arguments.
    is_anomaly
        True for labelled anomalies, ``(n,)``.
    reference
        Scores drawn from the prior N(0, 1), ``(m,)``.
    """
    if scores.shape != is_anomaly.shape:
        raise ValueError(
            f"scores and is_anomaly must have one shape; got {tuple(scores.shape)} and "
            f"{tuple(is_anomaly.shape)}."
        )
    deviation = (scores - reference.mean()) / reference.std(correction=0)
    return torch.where(is_anomaly, torch.relu(_MARGIN - deviation), deviation.abs())


@dataclass(kw_only=True, repr=False, eq=False)
class DevNet(NetworkBaseline):
    """Deviation network: a network whose output is the score.

    Normal rows are drawn to the mean of 5,000 reference scores from N(0, 1), labelled
    anomalies to at least five of their standard deviations above. Unlabelled rows are taken
    as normal. Every batch is half anomalies, drawn with replacement.

    Notes
    -----
    The parameters are those of `NetworkBaseline`; one layer of 20 units, 50 epochs and the
    weight decay are the authors'.

    References
    ----------
    Pang et al., "Deep Anomaly Detection with Deviation Networks", KDD 2019.
    """

    hidden: tuple[int, ...] = (20,)
    max_epochs: int = 50
    weight_decay: float = 1e-2

    label_use: ClassVar[LabelUse] = "required"

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        rows = torch.from_numpy(X.astype(np.float32))
        is_anomaly = torch.from_numpy(labels == ANOMALY)
        network = built(partial(perceptron, (X.shape[1], *self.hidden, 1)), seed)
        reference = torch.randn(
            _N_REFERENCES, generator=generator(derive(seed, Stream.VALIDATE), CPU)
        )

        def loss(batch: Tensor, _: torch.Generator) -> Tensor:
            scores = network(rows[batch]).squeeze(-1)
            return deviation_loss(scores, is_anomaly[batch], reference).mean()

        batches = balanced(
            (~is_anomaly).nonzero()[:, 0], is_anomaly.nonzero()[:, 0], self.batch_size
        )
        fit(network, loss, batches, self._schedule(), seed)
        self._network = network.double()

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return evaluate(self._network, X).squeeze(-1)
