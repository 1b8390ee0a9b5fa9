"""SS-DGM: a classifier inside a deep generative model (M1+M2 of Kingma et al.)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from aloof.baselines.contract import LabelUse, NetworkBaseline
from aloof.baselines.fitting import balanced, built, evaluate, fit
from aloof.baselines.networks import perceptron
from aloof.estimators import VAE
from aloof.labels import ANOMALY, UNLABELLED
from aloof.objectives import elbo, gaussian, reparameterize
from aloof.training.seeds import Stream, derive

__all__ = ["SSDGM", "LabelledGenerativeModel"]


class LabelledGenerativeModel(nn.Module):
    r"""M2: :math:`p(x, y, z) = p(y)\,p(z)\,p(x | y, z)` with a classifier :math:`q(y | x)`.

    Parameters
    ----------
    n_features
        Size of x.
    width
        Of the hidden layers, and of z.
    anomaly_share
        The prior :math:`p(y = 1)`.
    """

    log_prior: Tensor

    def __init__(self, n_features: int, width: int, anomaly_share: float) -> None:
        super().__init__()
        self.classifier = perceptron((n_features, width, 1))
        self.encoder = perceptron((n_features + 1, width, 2 * width))
        self.decoder = perceptron((width + 1, width, n_features))
        prior = torch.tensor([math.log1p(-anomaly_share), math.log(anomaly_share)])
        self.register_buffer("log_prior", prior)

    def logit(self, x: Tensor) -> Tensor:
        """Return the log-odds of :math:`q(y = 1 | x)` for rows ``(n, n_features)``."""
        logit: Tensor = self.classifier(x).squeeze(-1)
        return logit

    def joint_bounds(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return lower bounds of log p(x, y) for y = 0 and y = 1, ``(2, n)``.

        Parameters
        ----------
        x
            Rows, ``(n, n_features)``.
        noise
            Standard normal, ``(n, width)``; both labels share it.
        """
        y = torch.arange(2.0, dtype=x.dtype, device=x.device)
        y = y.reshape(2, 1, 1).expand(2, len(x), 1)
        x = x.expand(2, *x.shape)
        mean, log_var = self.encoder(torch.cat([x, y], -1)).chunk(2, -1)
        z = reparameterize(mean, log_var, noise)
        output = self.decoder(torch.cat([z, y], -1))
        likelihood = gaussian(x, output, x.new_zeros(()), reduction="sum")
        return elbo(likelihood, mean, log_var) + self.log_prior.unsqueeze(-1)

    def objective(self, x: Tensor, labels: Tensor, noise: Tensor, weight: float) -> Tensor:
        """Return what is maximised, for each row.

        For a labelled row this is the bound of log p(x, y) and `weight` times log q(y | x).
        For an unlabelled one it is the bound of log p(x): the sum over y, weighted by the
        classifier, and the classifier's entropy.

        Parameters
        ----------
        x, noise
            As in `joint_bounds`.
        labels
            1, 0 and -1, ``(n,)``.
        weight
            Of the classifier.
        """
        joint = self.joint_bounds(x, noise)
        logit = self.logit(x)
        log_q = logsigmoid(torch.stack([-logit, logit]))
        unlabelled = (log_q.exp() * (joint - log_q)).sum(0)
        normal, anomaly = (joint + weight * log_q).unbind(0)
        labelled = torch.where(labels == ANOMALY, anomaly, normal)
        return torch.where(labels == UNLABELLED, unlabelled, labelled)


@dataclass(kw_only=True, repr=False, eq=False)
class SSDGM(NetworkBaseline):
    """Semi-supervised deep generative model; the score is its classifier's logit.

    M1 is `aloof.VAE` with one member on all rows. M2 models its standardised codes together
    with the label, and sums over the label where there is none. Every batch is half
    labelled anomalies, drawn with replacement.

    Parameters
    ----------
    anomaly_share
        Prior probability that a row is an anomaly.
    classifier_weight
        Weight of the cross-entropy of labelled rows.

    Notes
    -----
    The other parameters are those of `NetworkBaseline`; the last of `hidden` is the size of
    both latent spaces. An epoch of half-anomalous batches has twice the steps of another's,
    hence half the epochs. Rows labelled 0 are labelled rows of class 0.

    References
    ----------
    Kingma et al., "Semi-Supervised Learning with Deep Generative Models", NeurIPS 2014.
    """

    max_epochs: int = 75
    anomaly_share: float = 0.05
    classifier_weight: float = 1.0

    label_use: ClassVar[LabelUse] = "required"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._require(
            anomaly_share=(0 < self.anomaly_share < 1, "between 0 and 1"),
            classifier_weight=(self.classifier_weight >= 0, "at least 0"),
        )

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        self._vae = VAE(
            hidden=self.hidden[:-1],
            latent_dim=self.hidden[-1],
            n_members=1,
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            standardize=False,
            device="cpu",
            random_state=derive(seed, Stream.MEMBER),
        ).fit(X)
        codes = self._vae.latent(X)[0]
        self._scaler = StandardScaler().fit(codes)
        rows = torch.from_numpy(self._scaler.transform(codes).astype(np.float32))
        label = torch.from_numpy(labels)
        width = self.hidden[-1]
        factory = partial(LabelledGenerativeModel, rows.shape[1], width, self.anomaly_share)
        model = cast(LabelledGenerativeModel, built(factory, seed))

        def loss(batch: Tensor, source: torch.Generator) -> Tensor:
            noise = torch.randn(len(batch), width, generator=source)
            gain = model.objective(rows[batch], label[batch], noise, self.classifier_weight)
            return -gain.mean()

        usual = (label != ANOMALY).nonzero()[:, 0]
        anomalies = (label == ANOMALY).nonzero()[:, 0]
        batches = balanced(usual, anomalies, self.batch_size)
        fit(model, loss, batches, self._schedule(), seed)
        self._model = model.double()

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        codes = self._scaler.transform(self._vae.latent(X)[0])
        return evaluate(self._model.logit, codes)
