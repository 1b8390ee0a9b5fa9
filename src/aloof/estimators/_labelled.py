"""What the detectors that learn from labelled anomalies share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aloof.estimators._base import Detector
from aloof.exceptions import LabelWarning, warn_caller
from aloof.vae import Objective, TrainingConfig, VAEProblem

__all__ = ["LabelledDetector"]

# Without `jitter`, and none at all where values must stay in [0, 1], as pixels must.
_JITTER = 0.5


@dataclass(kw_only=True, repr=False, eq=False)
class LabelledDetector(Detector):
    """A detector that learns from labelled anomalies.

    Parameters
    ----------
    gamma
        Weight of the anomalies' loss.
    jitter
        How far to move labelled anomalies in every batch, in the directions in which normal
        rows differ and in units of their standard deviation. Each anomaly then stands for its
        neighbourhood. None: 0.5, or 0 with ``likelihood="bernoulli"`` and for images.
    warmup_epochs
        Passes over normal rows alone before anomalies join. None: a third of all passes.
    anomaly_interval
        Anomalies join every n-th batch.
    anomaly_batch_size
        Anomalies in such a batch. If there are fewer, they are reused, all equally often.
    freeze_decoder
        Whether anomalies train only the encoder.
    separate_encoder
        Whether anomalies have their own encoder. An ablation of the paper; it does worse.
    """

    gamma: float = 0.1
    jitter: float | None = None
    warmup_epochs: int | None = None
    anomaly_interval: int = 1
    anomaly_batch_size: int = 32
    freeze_decoder: bool = True
    separate_encoder: bool = False

    def _objective(self) -> Objective:
        jitter = self.jitter
        if jitter is None:
            bounded = self.likelihood == "bernoulli" or len(self.shape_) == 3
            jitter = 0.0 if bounded else _JITTER
        return replace(super()._objective(), gamma=self.gamma, jitter=jitter)

    def _config(self, problem: VAEProblem) -> TrainingConfig:
        return replace(
            super()._config(problem),
            # Without anomalies there is nothing to warm up for: it is the plain VAE.
            warmup_epochs=self._warmup_epochs(problem) if problem.uses_anomalies else 0,
            anomaly_interval=self.anomaly_interval,
            anomaly_batch_size=self.anomaly_batch_size,
            freeze_decoder=self.freeze_decoder,
            separate_encoder=self.separate_encoder,
        )

    def _warmup_epochs(self, problem: VAEProblem) -> int:
        if self.warmup_epochs is not None:
            return self.warmup_epochs
        return self._max_epochs(problem) // 3

    def _warn_without_anomalies(self, problem: VAEProblem) -> None:
        if len(problem.anomaly) == 0:
            warn_caller(
                f"{type(self).__name__} was given no labelled anomalies, so it trains as a "
                "plain VAE. Label known anomalies with 1.",
                LabelWarning,
            )
            return
        max_epochs, warmup_epochs = self._max_epochs(problem), self._warmup_epochs(problem)
        if max_epochs <= warmup_epochs:
            warn_caller(
                f"max_epochs={max_epochs} ends before the labelled anomalies join after "
                f"warmup_epochs={warmup_epochs}, so they are not used.",
                LabelWarning,
            )
