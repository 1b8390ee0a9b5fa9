"""The one training loop: all members of all problems, stacked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from types import FunctionType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.exceptions import DivergenceError
from aloof.networks import Architecture
from aloof.training.adam import Adam
from aloof.training.batches import Batch, Batches
from aloof.training.checkpoint import (
    Checkpoint,
    check_place,
    fingerprint,
    read_checkpoint,
    write_checkpoint,
)
from aloof.training.clipping import clip_rows_
from aloof.training.config import TrainingConfig
from aloof.training.device import on
from aloof.training.ensemble import Ensemble
from aloof.training.history import History
from aloof.training.jitter import jitter_
from aloof.training.loss import Terms, batch_loss, member_numbers
from aloof.training.problem import Problem
from aloof.training.progress import EpochReport, ProgressCallback
from aloof.training.replay import Replay, Step
from aloof.training.rows import gather, place
from aloof.training.validation import Validation
from aloof.training.warmup import SharedWarmups, share_warmups

__all__ = ["FitResult", "count_epochs", "train"]

_CHECKPOINT_EVERY = 10  # epochs


@dataclass(frozen=True)
class FitResult:
    """A trained problem.

    Attributes
    ----------
    ensemble
        Its members.
    history
        Curves ``(epochs, members)`` by name; see `History`.
    best_epoch
        The epoch each member's state is from, counted from 1.
    """

    ensemble: Ensemble
    history: dict[str, NDArray[np.float64]]
    best_epoch: NDArray[np.int64]


def train(
    data: Sequence[Tensor],
    problems: Sequence[Problem],
    architecture: Architecture,
    config: TrainingConfig,
    *,
    device: torch.device,
    checkpoint: Path | None = None,
    on_epoch: ProgressCallback | None = None,
) -> list[FitResult]:
    """Train every member of every problem.

    Problems whose batches have the same shape are trained as one stack. A member's result
    does not depend on what it is stacked with: it is that of the member trained alone, up
    to floating-point rounding. Problems that differ only in what anomalies teach share one
    warm-up.

    Parameters
    ----------
    data
        The rows all problems index, ``(n, ...)``, and their context, if any.
    problems
        What to learn.
    architecture
        What makes a member's networks.
    config
        The schedule.
    device
        Where to compute.
    checkpoint
        File to keep the state in; if it holds the state of this very fit, that fit is
        continued. Further stacks add a number to the name. The files are left behind, so
        that a run of several calls can be resumed; see `discard_checkpoints`.
    on_epoch
        Called after each epoch.

    Returns
    -------
    One result for each problem, in order.
    """
    if checkpoint is not None:
        check_place(checkpoint)
    with on(device):
        return _train(data, problems, architecture, config, device, checkpoint, on_epoch)


def _train(
    data: Sequence[Tensor],
    problems: Sequence[Problem],
    architecture: Architecture,
    config: TrainingConfig,
    device: torch.device,
    checkpoint: Path | None,
    on_epoch: ProgressCallback | None,
) -> list[FitResult]:
    data = place(data, device)
    warmups, first, stacks = _divided(problems, config)
    warmup = replace(config, max_epochs=config.warmup_epochs, warmup_epochs=0)
    progress = _Progress(on_epoch, count_epochs(problems, config))
    paths = _paths(checkpoint)
    begun: dict[int, _Run] = {}
    for numbers in first:
        run = _Run(data, [warmups.problems[i] for i in numbers], architecture, warmup, device)
        run.fit(next(paths), progress)
        begun.update(dict.fromkeys(numbers, run))
    results: dict[int, FitResult] = {}
    for numbers in stacks:
        run = _Run(data, [problems[i] for i in numbers], architecture, config, device)
        shared = [warmups.of[number] for number in numbers]
        start = [(begun[i], warmups.problems[i]) for i in shared if i is not None]
        trained = run.fit(next(paths), progress, _joined(start) if start else None)
        results.update(zip(numbers, trained, strict=True))
    return [results[number] for number in range(len(problems))]


def count_epochs(problems: Sequence[Problem], config: TrainingConfig) -> int:
    """Return the epochs that `train` will report, over all stacks."""
    warmups, first, stacks = _divided(problems, config)
    begun = sum(warmups.of[numbers[0]] is not None for numbers in stacks)
    return len(stacks) * config.max_epochs + (len(first) - begun) * config.warmup_epochs


def _divided(
    problems: Sequence[Problem], config: TrainingConfig
) -> tuple[SharedWarmups, list[list[int]], list[list[int]]]:
    """Return the shared warm-ups, their stacks, and the stacks of the problems."""
    warmups = share_warmups(problems, config)
    none: list[int | None] = [None] * len(warmups.problems)
    first = _stacks(warmups.problems, none, config.batch_size)
    return warmups, first, _stacks(problems, warmups.of, config.batch_size)


def _stacks(
    problems: Sequence[Problem], warmups: Sequence[int | None], batch_size: int
) -> list[list[int]]:
    """Group problems that can be trained together: all or none has a warm-up to begin from."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, (problem, warmup) in enumerate(zip(problems, warmups, strict=True)):
        groups.setdefault((warmup is None, problem.shape(batch_size)), []).append(number)
    return list(groups.values())


def _paths(checkpoint: Path | None) -> Iterator[Path | None]:
    """Yield the checkpoint of each run; all but the first have a number."""
    yield checkpoint
    for index in count(1):
        yield checkpoint and checkpoint.with_name(f"{checkpoint.name}.{index}")


def _joined(parts: Sequence[tuple[_Run, Problem]]) -> dict[str, Tensor]:
    """Return the state to begin from: that of each problem in the run that trained it."""
    states = [run.state_of(problem) for run, problem in parts]
    return {name: _along_members(name, [s[name] for s in states]) for name in states[0]}


def _along_members(name: str, parts: list[Tensor]) -> Tensor:
    if name == "optimizer.step" or name == "history.learning_rate":
        return parts[0]  # the same for all members
    return torch.cat(parts, 1 if name.startswith("history.") else 0)


class _Progress:
    """Epochs, counted over all runs."""

    def __init__(self, callback: ProgressCallback | None, total: int) -> None:
        self._callback = callback
        self._total = total
        self._done = 0

    def skip(self, epochs: int) -> None:
        """Count epochs that were trained before."""
        self._done += epochs

    def add(self, epochs: int, n_members: int, loss: float) -> None:
        """Count epochs, and report."""
        self._done += epochs
        if self._callback is not None:
            self._callback(EpochReport(self._done, self._total, n_members, loss))


class _Run:
    """The training of one stack."""

    def __init__(
        self,
        data: Sequence[Tensor],
        problems: Sequence[Problem],
        architecture: Architecture,
        config: TrainingConfig,
        device: torch.device,
    ) -> None:
        self.data, self.problems, self.config, self.device = (
            data,
            problems,
            config,
            device,
        )
        self.objective = problems[0].objective
        owners = [problem for problem in problems for _ in problem.seeds]
        seeds = [seed for problem in problems for seed in problem.seeds]
        dtype = data[0].dtype if data[0].is_floating_point() else torch.float32
        self.ensemble = Ensemble.build(
            architecture,
            seeds,
            gather(data, torch.arange(2)),
            device=device,
            dtype=dtype,
            engine=config.engine,
            separate_encoder=config.separate_encoder and problems[0].uses_anomalies,
        )
        self.batches = Batches(
            owners,
            seeds,
            batch_size=config.batch_size,
            anomaly_batch_size=config.anomaly_batch_size,
            latent_dim=architecture.latent_dim,
            dropped=[data[number].shape[1:] for number, _ in self._dropout()],
            device=device,
            dtype=dtype,
        )
        self.numbers = member_numbers(
            [owner.objective for owner in owners], device=device, dtype=dtype
        )
        self.jitters = any(owner.objective.jitter for owner in owners)
        if self.jitters and not data[0].is_floating_point():
            raise ValueError("jitter needs rows of floating-point numbers; set jitter=0.")
        if self.batches.n_normal == 1 and self.ensemble.mixes_rows:
            raise ValueError(
                "Batch normalisation needs at least two rows in a batch; raise batch_size "
                f"(now {config.batch_size}) or bring more rows."
            )
        matrix, self.parameters = self.ensemble.flatten()
        self.optimizer = Adam(matrix)
        self.loss: Callable[..., Terms] = batch_loss
        if config.compile:
            self.loss = torch.compile(_own_copy(batch_loss))
        self.validation = (
            Validation(owners, seeds, architecture.latent_dim, config.patience, data, device)
            if config.patience is not None and len(owners[0].validation_normal)
            else None
        )
        self.history = History()
        self.step: Step = self._step
        # Networks that draw from the host's seeds in every step cannot be replayed.
        if device.type == "cuda" and not self.ensemble.loops:
            self.step = Replay(self._step)

    def fit(
        self,
        path: Path | None,
        progress: _Progress,
        warmed_up: dict[str, Tensor] | None = None,
    ) -> list[FitResult]:
        """Train, from a checkpoint or from the state at the end of a shared warm-up."""
        config, n_members = self.config, self.ensemble.n_members
        owner, first, loss = "", 0, float("nan")
        if path is not None:
            owner = fingerprint(self.data, self.problems, config, self.ensemble)
            first = self._resume(path, owner)
        skipped = 0 if warmed_up is None else config.warmup_epochs
        if warmed_up is not None and first < skipped:
            self._load(warmed_up)
            first = skipped
        epoch = first
        progress.skip(first - skipped)
        while epoch < config.max_epochs:
            if self.validation is not None and self.validation.all_stopped:
                break
            loss = self._epoch(epoch)
            epoch += 1
            progress.add(1, n_members, loss)
            if path is not None and epoch % _CHECKPOINT_EVERY == 0:
                write_checkpoint(path, Checkpoint(epoch, self._state()), owner)
        if epoch < config.max_epochs or first == epoch:
            progress.add(config.max_epochs - epoch, n_members, loss)
        if path is not None and epoch > first:
            write_checkpoint(path, Checkpoint(epoch, self._state()), owner)
        self.step = self._step  # what was recorded holds memory
        self.batches.forget()
        return self._results(epoch)

    def state_of(self, problem: Problem) -> dict[str, Tensor]:
        """Return the part of the state that belongs to one of the problems."""
        before = self.problems[: self.problems.index(problem)]
        start = sum(len(other.seeds) for other in before)
        own = slice(start, start + len(problem.seeds))
        return {
            name: value
            if value.dim() == 0 or name == "history.learning_rate"
            else (value[:, own] if name.startswith("history.") else value[own])
            for name, value in self._state().items()
        }

    def _epoch(self, epoch: int) -> float:
        """Train one epoch; return its mean loss."""
        config = self.config
        rate = config.rate(epoch)
        learning_rate = torch.tensor(rate, device=self.device)
        beta_kl = self.numbers["beta_kl"] * config.annealing(epoch)
        # Sums stay on the device: the host waits once an epoch, not once a step.
        sums = torch.zeros(4, self.ensemble.n_members, device=self.device)
        n_kept = config.n_kept(epoch, self.batches.n_normal)
        with_anomalies = 0
        for batch in self.batches.epoch(epoch, anomaly_interval=self._interval(epoch)):
            sums += self.step(batch, beta_kl, learning_rate, n_kept)
            with_anomalies += batch.anomaly_noise is not None
        if self.device.type == "cuda" and epoch + 1 < config.max_epochs:
            self.batches.begin(epoch + 1, anomaly_interval=self._interval(epoch + 1))
        total, normal, anomaly, reconstruction = sums.cpu().double().numpy()
        if not np.isfinite(total).all():
            bad = np.flatnonzero(~np.isfinite(total))
            raise DivergenceError(
                f"The loss of {len(bad)} of {len(total)} members is not finite in epoch "
                f"{epoch + 1}. Lower learning_rate (now {rate:g}) or max_grad_norm "
                f"(now {config.max_grad_norm}), and look for extreme values in the data."
            )
        n_steps = self.batches.n_steps
        kl_weight = beta_kl.cpu().double().numpy()[:, 0]
        record = {
            "loss": (normal / n_steps) + anomaly / max(1, with_anomalies),
            "normal": normal / n_steps,
            "anomaly": anomaly / max(1, with_anomalies),
            "reconstruction": reconstruction / n_steps,
            "kl": (normal - reconstruction) / n_steps / np.where(kl_weight, kl_weight, np.nan),
            "learning_rate": np.float64(rate),
        }
        if self.validation is not None:
            record["validation"] = self.validation.check(
                self.ensemble,
                self.objective,
                self.numbers,
                epoch,
                counts=epoch >= config.first_full_epoch,
            )
        self.history.append(record)
        return float(record["loss"].mean())

    def _interval(self, epoch: int) -> int | None:
        """Return how often anomalies join the batches of an epoch; None: never."""
        return self.config.interval(epoch) if self.problems[0].uses_anomalies else None

    def _step(self, batch: Batch, beta_kl: Tensor, rate: Tensor, n_kept: int | None) -> Tensor:
        """Update every member once; return loss, its parts, and reconstruction error."""
        rows = gather(self.data, batch.rows)
        if self.jitters and batch.anomaly_noise is not None:
            jitter_(rows[0], batch.n_normal, self.numbers["jitter"])
        for (number, share), chances in zip(self._dropout(), batch.chances, strict=True):
            rows[number].masked_fill_(chances < share, 0)
        with self._autocast():
            terms = self.loss(
                self.ensemble,
                self.objective,
                self.numbers,
                beta_kl,
                rows,
                batch.noise,
                batch.anomaly_noise,
                n_normal=batch.n_normal,
                freeze_decoder=self.config.freeze_decoder,
                n_kept=n_kept,
                seeds=batch.seeds if self.ensemble.loops else None,
            )
        # Members are independent: the gradient of the sum is each member's own.
        gradients = torch.autograd.grad(
            terms.total.sum(), self.parameters, materialize_grads=True
        )
        gradient = torch.cat([part.flatten(1) for part in gradients], 1)
        if self.config.max_grad_norm is not None:
            clip_rows_(gradient, self.config.max_grad_norm)
        self.optimizer.step(gradient, rate)
        parts = (terms.total, terms.normal, terms.anomaly, terms.reconstruction)
        return torch.stack(parts).detach().float()

    def _dropout(self) -> list[tuple[int, float]]:
        """Return the parts of the data that are seen in part, and what share is lost."""
        shares = enumerate(self.config.context_dropout, 1)
        return [(number, share) for number, share in shares if share]

    def _autocast(self) -> AbstractContextManager[object]:
        if self.config.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def _state(self) -> dict[str, Tensor]:
        tensors = {f"network.{k}": v for k, v in self.ensemble.state().items()}
        tensors |= {f"optimizer.{k}": v for k, v in self.optimizer.state.items()}
        for name, values in self.history.curves().items():
            tensors[f"history.{name}"] = torch.from_numpy(values)
        if self.validation is not None:
            for name, value in self.validation.state().items():
                tensors[f"validation.{name}"] = value
        return tensors

    def _resume(self, path: Path, owner: str) -> int:
        """Continue from the checkpoint, if there is one; return the epochs done."""
        checkpoint = read_checkpoint(path, owner)
        if checkpoint is None:
            return 0
        self._load(checkpoint.tensors)
        return checkpoint.epoch

    def _load(self, state: Mapping[str, Tensor]) -> None:
        """Take up where `_state` was taken."""
        parts: dict[str, dict[str, Tensor]] = {}
        for name, value in state.items():
            part, rest = name.split(".", 1)
            parts.setdefault(part, {})[rest] = value
        self.ensemble.load(parts["network"])
        self.optimizer.load(parts["optimizer"])
        self.history = History(
            {name: value.numpy() for name, value in parts["history"].items()}
        )
        if self.validation is not None:
            self.validation.load(parts["validation"])

    def _results(self, n_epochs: int) -> list[FitResult]:
        best_epoch = np.full(self.ensemble.n_members, n_epochs)
        if self.validation is not None:
            best_epoch = self.validation.restore(self.ensemble, n_epochs)
        results, start = [], 0
        for problem in self.problems:
            own = slice(start, start + len(problem.seeds))
            start = own.stop
            results.append(
                FitResult(self.ensemble.select(own), self.history.curves(own), best_epoch[own])
            )
        return results


def _own_copy(function: Callable[..., Terms]) -> Callable[..., Terms]:
    """Return a copy with compiled versions of its own.

    torch keeps them with the function's code and gives up after eight; a run with stacks of
    many sizes would soon fall back to eager execution.
    """
    code = function.__code__.replace()
    copy = FunctionType(code, function.__globals__, function.__name__)
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy
