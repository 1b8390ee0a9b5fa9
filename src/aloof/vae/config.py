"""How to train VAEs: everything that is the same for all members of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aloof.training import Engine, Precision, Schedule

__all__ = ["LearningRateSchedule", "TrainingConfig"]

LearningRateSchedule = Literal["constant", "step", "cosine"]

_STEP = 50  # epochs


@dataclass(frozen=True)
class TrainingConfig:
    """The schedule of a fit.

    Attributes
    ----------
    max_epochs
        Passes over the normal rows.
    warmup_epochs
        Passes over normal rows alone before anomalies join.
    annealing_epochs
        Passes over which the weight of the KL divergence grows linearly from zero.
    anomaly_interval
        Anomalies join every so many batches.
    batch_size, anomaly_batch_size
        Most normal rows, and number of anomalous rows, in a batch.
    freeze_decoder
        Anomalies teach the encoder only.
    separate_encoder
        Anomalies have an encoder of their own (an ablation of the paper; it is worse).
    learning_rate
        Of Adam.
    lr_schedule
        ``"step"`` multiplies by 0.1 every 50 epochs, ``"cosine"`` falls to zero at the last
        epoch; both begin when the warm-up ends, because an earlier decay leaves slow
        learners untrained.
    milestones
        Epochs, counted from 0, at which ``"step"`` multiplies instead; empty: those above.
    max_grad_norm
        Each member's gradient is scaled down to this norm; None: never.
    context_dropout
        For each part of a row's context, the share of its numbers that are set to zero in
        training, anew in every batch; for words this is word dropout.
    trim
        Share of a batch's normal rows, the worst-fitting ones, that are left out of the loss
        once annealing is over: hidden anomalies are among them.
    patience
        Stop a member after so many epochs without a better validation loss, counted from
        the first epoch with the full objective, and keep its best state; None: never.
    precision
        ``"bfloat16"`` runs the networks in autocast.
    compile
        Run the loss through `torch.compile`; worth it for long fits on a GPU.
    engine
        How members are stacked; see `aloof.training.stack`.
    """

    max_epochs: int = 150
    warmup_epochs: int = 50
    annealing_epochs: int = 20
    anomaly_interval: int = 1
    batch_size: int = 128
    anomaly_batch_size: int = 32
    freeze_decoder: bool = True
    separate_encoder: bool = False
    learning_rate: float = 1e-3
    lr_schedule: LearningRateSchedule = "constant"
    milestones: tuple[int, ...] = ()
    max_grad_norm: float | None = 10.0
    context_dropout: tuple[float, ...] = ()
    trim: float = 0.0
    patience: int | None = None
    precision: Precision = "float32"
    compile: bool = False
    engine: Engine = "auto"

    def __post_init__(self) -> None:
        if self.milestones and self.lr_schedule != "step":
            raise ValueError(
                f"milestones only apply to lr_schedule='step'; got {self.lr_schedule!r}."
            )

    def annealing(self, epoch: int) -> float:
        """Return the share of the KL weight in force in an epoch, counted from 0."""
        return min(1.0, (epoch + 1) / max(1, self.annealing_epochs))

    @property
    def schedule(self) -> Schedule:
        """What of it is not about VAEs."""
        start = self.warmup_epochs
        steps = self.milestones or tuple(range(start + _STEP, self.max_epochs, _STEP))
        return Schedule(
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            milestones=steps if self.lr_schedule == "step" else (),
            cosine_from=start if self.lr_schedule == "cosine" else None,
            max_grad_norm=self.max_grad_norm,
            context_dropout=self.context_dropout,
            patience=self.patience,
            precision=self.precision,
            compile=self.compile,
            engine=self.engine,
        )

    def interval(self, epoch: int) -> int | None:
        """Return the anomaly interval of an epoch, None during the warm-up."""
        return self.anomaly_interval if epoch >= self.warmup_epochs else None

    def n_kept(self, epoch: int, n_normal: int) -> int | None:
        """Return how many of a batch's normal rows count in an epoch; None: all."""
        n_left_out = int(self.trim * n_normal)
        return n_normal - n_left_out if n_left_out and epoch >= self.annealing_epochs else None

    @property
    def first_full_epoch(self) -> int:
        """Return the first epoch with the full objective, where patience begins."""
        return max(self.warmup_epochs, self.annealing_epochs)
