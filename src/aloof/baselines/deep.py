"""What baselines that train networks share: members, schedule, many problems at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from aloof.baselines.contract import Baseline, LabelUse
from aloof.baselines.members import Fitted, LearningMembers, RowLearner, balanced_task
from aloof.baselines.networks import Networks, networks_for
from aloof.estimators._parameters import Check, integer, real, widths
from aloof.exceptions import LabelError
from aloof.labels import ANOMALY, NORMAL
from aloof.networks import count_multiplications
from aloof.problem import Problem
from aloof.training import (
    Precision,
    ProgressCallback,
    Run,
    Schedule,
    Setup,
    Stream,
    Task,
    Trained,
    derive,
    resolve_device,
    stacks_of,
)

__all__ = ["MILESTONES", "DeepBaseline", "HalfAnomalies", "epochs_of"]


def _increasing(value: Any) -> bool:
    """Whether a value is None or epochs in their order, none of them the first."""
    if value is None:
        return True
    epoch, _ = integer(1)
    if not isinstance(value, tuple | list) or not all(map(epoch, value)):
        return False
    return all(one < other for one, other in pairwise(value))


MILESTONES: Check = (_increasing, "a tuple of increasing ints >= 1, or None")


def epochs_of(tasks: Sequence[Task], schedule: Schedule) -> int:
    """Return the epochs of all stacks of one phase."""
    return schedule.max_epochs * len(stacks_of(tasks, schedule.batch_size))


@dataclass(kw_only=True, repr=False, eq=False)
class DeepBaseline(Baseline):
    """A baseline that trains networks: on rows of numbers, or on images.

    Parameters
    ----------
    hidden
        For rows of numbers: widths of the layers; the last one is the size of the
        representation. The paper has 32-16-8 for narrow tables and 128-64-32 for wide ones.
    images
        For images: options of `aloof.networks.ConvEncoder`, ``latent_dim`` and ``decoder``; see
        `aloof.baselines.networks.networks_for`. None: defaults.
    n_members
        Networks, trained as one stack; the score is their mean.
    max_epochs
        Passes over the training rows.
    batch_size
        Most rows in a batch. Batches of a pass are of equal size, and no row is dropped.
    learning_rate
        Of Adam.
    milestones
        Passes, counted from 0, from which on the rate is a tenth of what it was; None: after
        two thirds of the passes.
    weight_decay
        Weight of the squared parameters in the loss, times one half.
    precision
        ``"bfloat16"`` trains the networks in autocast, all but the last layer of encoders and
        classifiers.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"mps"``.

    Attributes
    ----------
    fitted_
        The trained members.
    device_
        Where they were trained.
    """

    hidden: tuple[int, ...] = (32, 16, 8)
    images: Mapping[str, Any] | None = None
    n_members: int = 1
    max_epochs: int = 150
    batch_size: int = 128
    learning_rate: float = 1e-3
    milestones: tuple[int, ...] | None = None
    weight_decay: float = 1e-6
    precision: Precision = "float32"
    device: str = "auto"

    checks: ClassVar[Mapping[str, Check]] = {
        "hidden": widths(1),
        "images": (lambda v: v is None or isinstance(v, Mapping), "a mapping, or None"),
        "max_epochs": integer(1),
        "milestones": MILESTONES,
        "weight_decay": real(0),
    }

    # Whether the epoch may be chosen by rows that a problem holds out.
    chooses_epoch: ClassVar[bool] = False

    # Parameters by data set, as the authors, or those who ran a method there, published them.
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @property
    def takes_image_networks(self) -> bool:
        """Whether `images` may be set; some methods bring networks of their own."""
        return self._own_checks()["images"][0]({})

    def fit_problems(
        self,
        data: torch.Tensor,
        problems: Sequence[Problem],
        *,
        checkpoint: Path | None = None,
        on_epoch: ProgressCallback | None = None,
    ) -> list[Fitted]:
        """Fit every member of every problem, stacked.

        A member's result does not depend on what it is stacked with, up to floating-point
        rounding. Problems are trained at once as far as their epochs have as many steps: pass
        as many as the device holds. What learns nothing from labels is trained once for all
        problems that differ in these alone.

        Parameters
        ----------
        data
            The rows that all problems index, floating-point numbers; images are bytes, or
            numbers in [0, 1]. Networks are trained in the same precision.
        problems
            What to learn. Their seeds are the members; `n_members` and `random_state` are for
            `fit`.
        checkpoint
            File to keep the state in: the same call continues a killed one; see
            `aloof.training.Run`.
        on_epoch
            Called after each epoch.

        Returns
        -------
        One result for each problem, in order.
        """
        self._check_parameters()
        if self.images is not None and data.dim() != 4:
            raise ValueError(
                f"The 'images' parameter of {type(self).__name__} is for images, but these "
                "are rows of numbers. Leave it out, and set hidden."
            )
        for problem in problems:
            self._check_problem(problem)
        self.device_ = device = resolve_device(self.device)
        keys = [_key(self._seen(problem)) for problem in problems]
        distinct = dict(zip(keys, map(self._seen, problems), strict=True))
        own = list(distinct.values())
        networks = networks_for(data.shape[1:], self.hidden, self.images)
        run = Run(
            [data],
            device=device,
            checkpoint=checkpoint,
            n_epochs=self._n_epochs(data, own),
            on_epoch=on_epoch,
        )
        # Rows of numbers are scored in float64, whatever they were trained in.
        wide = (data.dim() == 2 or data.dtype == torch.float64) and device.type != "mps"
        dtype = torch.float64 if wide else torch.float32
        fitted = {
            key: Fitted(trained.members, trained.history, device, dtype)
            for key, trained in zip(distinct, self._train(run, networks, own), strict=True)
        }
        return [fitted[key] for key in keys]

    def multiplications(self, shape: Sequence[int]) -> float:
        """Return about how many there are in a step for a row, forwards and for one member.

        Parameters
        ----------
        shape
            Of a row.
        """
        networks = networks_for(shape, self.hidden, self.images)
        encoder = count_multiplications(networks.encoder, shape)
        return encoder + count_multiplications(networks.decoder, (networks.size,))

    @abstractmethod
    def _task(self, problem: Problem) -> Task:
        """Return a problem as the learner sees it."""

    def _members(self, networks: Networks, setup: Setup) -> LearningMembers:
        """Return untrained members; for methods with one phase."""
        raise NotImplementedError

    def _train(
        self, run: Run, networks: Networks, problems: Sequence[Problem]
    ) -> Sequence[Trained[Any]]:
        """Train members of all problems; return theirs for each."""
        learner = partial(RowLearner, partial(self._members, networks))
        return run.train(
            [self._task(problem) for problem in problems], learner, self._schedule()
        )

    def _n_epochs(self, data: torch.Tensor, problems: Sequence[Problem]) -> int:
        """Return the epochs of all phases, for progress; `data` are all rows."""
        return epochs_of([self._task(problem) for problem in problems], self._schedule())

    def _seen(self, problem: Problem) -> Problem:
        """Return a problem as far as the method looks at it: with its labels, or without."""
        return problem if self.uses_labels else problem.without_anomalies()

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], seed: int) -> None:
        (self.fitted_,) = self.fit_problems(self._rows(X), [self._problem(labels, seed)])

    def _rows(self, X: NDArray[Any]) -> torch.Tensor:
        """Return rows as networks are trained on them."""
        return torch.from_numpy(X.copy() if X.dtype == np.uint8 else X.astype(np.float32))

    def _problem(self, labels: NDArray[np.int64], seed: int) -> Problem:
        """Return what labels ask for."""
        normal = np.flatnonzero(labels != ANOMALY)
        return Problem(
            normal=normal,
            anomaly=np.flatnonzero(labels == ANOMALY),
            known=labels[normal] == NORMAL,
            seeds=[derive(seed, Stream.MEMBER, k) for k in range(self.n_members)],
        )

    def _anomaly_score(self, X: NDArray[Any]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self.fitted_.score(X).mean(0)
        return scores

    def _validate(self, X: ArrayLike, *, reset: bool) -> NDArray[Any]:
        if getattr(X, "ndim", 2) != 4:
            return super()._validate(X, reset=reset)
        of_bytes = getattr(X, "dtype", None) == np.uint8
        checked: NDArray[Any] = validate_data(
            self,
            X,
            reset=reset,
            dtype=np.uint8 if of_bytes else np.float32,
            allow_nd=True,
            ensure_min_samples=2 if reset else 1,
        )
        self._check_images(checked, reset=reset)
        return checked

    def _check_problem(self, problem: Problem) -> None:
        if len(problem.normal) < 2 or not len(problem.seeds):
            raise ValueError(
                "A problem needs at least two normal rows and one seed; got "
                f"{len(problem.normal)} and {len(problem.seeds)}."
            )
        held_out = len(problem.validation_normal), len(problem.validation_anomaly)
        if any(held_out) and not self.chooses_epoch:
            raise ValueError(f"{type(self).__name__} does not choose its epoch by rows.")
        if any(held_out) and not all(held_out):
            raise ValueError("An epoch is chosen by normal rows and anomalies, or not at all.")
        if self.label_use == "required" and not len(problem.anomaly):
            raise LabelError(
                f"{type(self).__name__} learns from labelled anomalies, but a problem has "
                "none. Leave it out, or use a method that needs no labels."
            )

    def _schedule(self, **changes: Any) -> Schedule:
        """Return the schedule of what the method itself minimises."""
        return self._lasting(
            self.max_epochs,
            self.milestones,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            **changes,
        )

    def _lasting(
        self, max_epochs: int, milestones: Sequence[int] | None, **changes: Any
    ) -> Schedule:
        """Return a schedule; without milestones, one that has them after two thirds."""
        steps = (ceil(2 * max_epochs / 3),) if milestones is None else tuple(milestones)
        options = {"batch_size": self.batch_size, "precision": self.precision} | changes
        return Schedule(max_epochs=max_epochs, milestones=steps, **options)


@dataclass(kw_only=True, repr=False, eq=False)
class HalfAnomalies(DeepBaseline):
    """A small network whose batches are half anomalies, all of them equally often.

    One layer of 20 units, 50 epochs and the weight decay are those of Pang et al.
    """

    hidden: tuple[int, ...] = (20,)
    max_epochs: int = 50
    weight_decay: float = 1e-2

    label_use: ClassVar[LabelUse] = "required"

    def _task(self, problem: Problem) -> Task:
        return balanced_task(problem)

    def _schedule(self, **changes: Any) -> Schedule:
        half = max(1, self.batch_size // 2)  # the others are anomalies
        return super()._schedule(batch_size=half, **changes)


def _key(problem: Problem) -> tuple[object, ...]:
    """Return what makes two problems the same to a method."""
    known = None if problem.known is None else problem.known.tobytes()
    rows = (
        problem.normal,
        problem.anomaly,
        problem.validation_normal,
        problem.validation_anomaly,
    )
    return *(part.tobytes() for part in rows), known, tuple(problem.seeds)
