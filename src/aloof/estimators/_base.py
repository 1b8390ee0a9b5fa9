"""What the four detectors share: the scikit-learn contract over `aloof.vae`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from aloof.calibration import Threshold
from aloof.estimators._arrays import as_array, check_order
from aloof.estimators._comparing import measured, training_scores
from aloof.estimators._decisions import Decisions
from aloof.estimators._distilling import distilled
from aloof.estimators._documentation import inherit_sections
from aloof.estimators._fitting import Prepared, fit_together
from aloof.estimators._images import (
    are_bytes,
    as_numbers,
    check_axes,
    check_images,
)
from aloof.estimators._parameters import Check, check_parameters, seed_of
from aloof.estimators._problems import problems_of, weighted
from aloof.estimators._refitting import go_on
from aloof.estimators._saving import describe, restored
from aloof.estimators._scaling import RankStandardizer, Scaling, Standardizer
from aloof.estimators.pyod import PyODAdapter
from aloof.labels import NORMAL, Labels, normal_rows, read_labels
from aloof.networks import (
    Architecture,
    ConvDecoder,
    ConvEncoder,
    MLPDecoder,
    MLPEncoder,
    NetworkFactory,
    check_architecture,
)
from aloof.persistence import SavedTensors, read_model, write_model
from aloof.scoring import (
    AggregatePrior,
    DirectionPenalty,
    Explanation,
    RowReader,
    Scorer,
    decoded,
    explain,
    reconstruct,
)
from aloof.training import (
    Precision,
    ProgressCallback,
    Stream,
    derive,
    progress_bar,
    resolve_device,
)
from aloof.vae import (
    METHODS,
    Ensemble,
    FitResult,
    LearningRateSchedule,
    Likelihood,
    Method,
    Objective,
    TrainingConfig,
    VAEProblem,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Detector"]

# Without `max_epochs`: the paper's 150 passes, fewer where a pass has many batches.
_MOST_EPOCHS, _FEWEST_EPOCHS, _ENOUGH_STEPS = 150, 15, 6000
# What scikit-learn and NumPy say about gaps, words and times in an array.
_NOT_NUMBERS = (
    "contains NaN",
    "could not convert string",
    "could not be promoted",
    "must be a string or a real number",
)


@dataclass(kw_only=True, repr=False, eq=False)
class Detector(Decisions, OutlierMixin, BaseEstimator):
    """A detector without a method.

    A dataclass, because a scikit-learn constructor does just what a dataclass's does:
    store keyword parameters as they are. Everything is checked in `fit`. Each class describes
    what is its own; what it inherits is put into its docstring.

    Parameters
    ----------
    hidden
        Widths of the hidden layers from the data to the latent space; the decoder mirrors
        them. For images: widths of the dense layers after the convolutions. Not used with your
        own networks.
    filters
        For images: the filters of each convolutional stage, which halves height and width.
        None: a number that suits the image size; see `aloof.networks.default_filters`.
    latent_dim
        Size of the latent space.
    n_members
        Size of the ensemble; the score is the mean over its members.
    beta_kl
        Weight of the KL divergence against the reconstruction error of one feature.
    likelihood
        ``"squared-error"`` (Gaussian, fixed variance), ``"gaussian"`` (a learned variance
        for each feature) or ``"bernoulli"`` (data in [0, 1]; set ``standardize=False``).
    max_epochs
        Passes over the normal rows. None: 150, or fewer (at least 15) if that would take more
        than 6,000 batches.
    annealing_epochs
        Passes over which the KL weight grows linearly from zero. None: 2 in 15.
    batch_size
        Maximum number of normal rows in a batch.
    learning_rate, lr_schedule
        Learning rate of Adam. The schedule is ``"constant"``, ``"step"`` (x 0.1 every 50
        epochs) or ``"cosine"``, and begins after the warm-up.
    max_grad_norm
        Scale each member's gradient down to this norm. None: never.
    trim
        Share of the worst-fitting rows of each batch to leave out of the loss once annealing
        is over. Set it to about the share of unlabelled anomalies you expect among the rows;
        if there are none, it costs a little accuracy.
    aggregate_prior
        Number of normal training rows (at most a quarter of them) whose latent codes a row's
        code is compared with. 0: compare with the prior N(0, I), as in the paper. See
        `aloof.scoring.aggregate_prior`.
    patience
        Stop a member after this many epochs without a better loss on held-out rows, and keep
        its best state. None: train for all epochs.
    validation_fraction
        Share of the rows to hold out when `patience` is set. Labelled anomalies are held out
        only if there are at least 10.
    confirmed_weight
        How many times as often as an unlabelled row to show a row labelled as normal (0). Its
        code is also among those that others are compared with, and the trees of a committee
        see it more often. 1: labelled as normal or not, all rows count the same. Use more for
        rows that were checked because they seemed odd.
    contamination
        Share of the training rows not labelled as anomalies that `predict` flags. It only
        sets the threshold after `fit`; see `set_threshold`.
    labels
        Convention of the labels for `fit`, `score` and `calibrate`: ``"aloof"`` (1 anomaly,
        0 normal, -1 unlabelled), ``"sklearn-outlier"`` (-1 anomaly, 1 normal), ``"pyod"``,
        ``"deepod"``, ``"deepsad"``, or a mapping such as ``{"fraud": 1, "ok": 0}``; see
        `aloof.encode_labels`.
    standardize
        Scale features to mean 0 and variance 1, measured on the rows not labelled as
        anomalies. ``"rank"``: first replace values by the normal quantiles of their ranks, so
        that heavy tails and units make no difference. None: scale rows of numbers, but not
        images.
    encoder, decoder
        Factories ``(shape, latent_dim) -> torch.nn.Module`` of your own networks; see
        `aloof.networks`.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"mps"``.
    precision
        ``"float32"``, or ``"bfloat16"`` to train in autocast.
    compile
        Train with `torch.compile`. Worth it for long fits on a GPU.
    checkpoint
        File to save the state of the fit in, every ten epochs. If the fit is killed, call it
        again with the same data, parameters and (integer) seed: it continues from the file,
        to the same result. The file is removed when the fit is done.
    random_state
        Seed. Member k has its own random stream, derived from the seed and k.
    verbose
        Show a progress bar.

    Attributes
    ----------
    offset_
        `predict` flags a row if its score is below; you may change it. With a false discovery
        rate, no row above it is flagged.
    threshold_
        The rule behind it, a `Threshold` of `aloof.calibration`.
    calibration_scores_
        Sorted anomaly scores of the rows given to `calibrate`, or None.
    history_
        Training curves by name, one value for each epoch and member,
        ``(epochs, n_members)``: ``loss`` (what was minimised), its parts ``normal`` and
        ``anomaly``, ``reconstruction`` and ``kl`` of the normal rows, and ``validation`` (the
        loss of held-out rows) with `patience`. ``learning_rate`` has one value for each epoch.
        See `plot_history`.
    n_iter_, best_epoch_
        Number of epochs trained, and the epoch that each member's state comes from.
    training_scores_
        Anomaly scores of the training rows.
    member_seeds_
        The members' seeds.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    hidden: tuple[int, ...] = (128, 64)
    filters: tuple[int, ...] | None = None
    latent_dim: int = 32
    n_members: int = 5
    beta_kl: float = 0.01
    likelihood: Likelihood = "squared-error"
    max_epochs: int | None = None
    annealing_epochs: int | None = None
    batch_size: int = 128
    learning_rate: float = 3e-3
    lr_schedule: LearningRateSchedule = "constant"
    max_grad_norm: float | None = 10.0
    trim: float = 0.0
    aggregate_prior: int = 256
    patience: int | None = None
    validation_fraction: float = 0.1
    confirmed_weight: int = 1
    contamination: float = 0.01
    labels: Labels = "aloof"
    standardize: bool | Literal["rank"] | None = None
    encoder: NetworkFactory | None = None
    decoder: NetworkFactory | None = None
    device: str = "auto"
    precision: Precision = "float32"
    compile: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    method: ClassVar[str]  # the name it goes by

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_sections(cls, "Parameters", "Attributes")

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn what is normal.

        Parameters
        ----------
        X
            Rows ``(n, n_features)``; images ``(n, channels, height, width)``, bytes or
            numbers in [0, 1]; or ``(n, *shape)`` with networks of your own.
        y
            Labels: 1 anomaly, 0 normal, -1, NaN or None unlabelled, unless the parameter
            `labels` says otherwise. Unlabelled rows are taken as normal.

        Returns
        -------
        The fitted detector.
        """
        fit_together(
            [self],
            [(X, y)],
            checkpoint=self.checkpoint,
            title=f"{type(self).__name__} x {self.n_members}" if self.verbose else None,
        )
        return self

    def refit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        max_epochs: int | None = None,
        on_epoch: ProgressCallback | None = None,
    ) -> Self:
        """Go on learning from where the members are, with other rows or other labels.

        For new labels after a review: in a fraction of the time of a fit. Features keep the
        scale of the first fit. The threshold is set as after a fit, and calibration rows are
        forgotten: see `calibrate`.

        Parameters
        ----------
        X, y
            As in `fit`: all rows, not only the new ones.
        max_epochs
            Passes over the normal rows; None: 15 in 100 of what `fit` takes. There is no
            warm-up, and the learning rate falls to zero.
        on_epoch
            Called after each epoch, in place of a bar.

        Returns
        -------
        The detector.
        """
        check_is_fitted(self)
        if self.verbose and on_epoch is None:
            with progress_bar(f"{type(self).__name__} x {self.n_members}") as report:
                return self.refit(X, y, max_epochs=max_epochs, on_epoch=report)
        go_on(self, X, y, max_epochs, on_epoch)
        return self

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how normal each row is: the mean of the members' scores.

        Higher is more normal, as in scikit-learn; `anomaly_score` is the opposite. The score
        of a row depends on that row alone and is the same in every call.
        """
        check_is_fitted(self)
        return self._score_samples(self._validate(X, reset=False))

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.int64]:
        """Fit, and return the decisions on the training rows."""
        self.fit(X, y)
        return np.where(self.decision_.flag(self.training_scores_), -1, 1)

    def latent(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return each member's posterior means, ``(n_members, n, latent_dim)``.

        Members have latent spaces of their own: look at one of them, or put them side by
        side, but do not average over them.
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        return self._scorer.latent(self._reader(X), len(X))

    def explain(self, X: ArrayLike) -> Explanation:
        """Return what every feature contributes to the anomaly score of each row.

        The contributions of a row add up to its anomaly score. They come in two parts: how
        badly a feature was reconstructed, and how far it moved the row's latent code from
        where normal rows are.
        """
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        found = explain(self._scorer, self._reader(X), len(X))
        return replace(found, expected=self.scaling_.inverse(found.expected))

    def reconstruct(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the mean of the members' reconstructions, in the units of the data."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        return self.scaling_.inverse(reconstruct(self._scorer, self._reader(X), len(X)))

    def prototypes(self) -> NDArray[np.float64]:
        """Return normal rows as the members remember them, in the units of the data.

        These are the reconstructions of the rows that codes are compared with (see
        `aggregate_prior`), or what the middle of the prior stands for where there are none.
        """
        check_is_fitted(self)
        codes = None if self._aggregate_prior is None else self._aggregate_prior.mean
        rows = decoded(self._scorer, codes, self._fitted_parameters["latent_dim"])
        return self.scaling_.inverse(rows.reshape(-1, *self.shape_))

    def distil(
        self, X: ArrayLike, y: ArrayLike | None = None, *, n_members: int = 1
    ) -> Detector:
        """Return a detector of fewer members with nearly the same scores, for speed.

        Its members are some of this detector's, trained further to give the mean of all
        members' scores. The detector itself is left as it is. The new one is not calibrated,
        and its threshold is that of a fresh fit.

        Parameters
        ----------
        X
            Rows as in `fit`, best the same ones. Images cannot be distilled.
        y
            Labels as in `fit`, or None.
        n_members
            How many members it is to have.

        Returns
        -------
        The new detector.
        """
        check_is_fitted(self)
        return distilled(self, type(self), X, y, n_members)

    def plot_history(self) -> Figure:
        """Return a picture of `history_`: a panel for each curve, a line for each member.

        Needs matplotlib (the extra ``plots``). A dashed line marks the epoch of each member's
        state where `patience` chose it.

        Returns
        -------
        A `matplotlib.figure.Figure`, which a notebook shows and ``savefig`` writes.
        """
        check_is_fitted(self)
        from aloof.report.figures import plot_history

        chosen = self.best_epoch_ if "validation" in self.history_ else None
        return plot_history(self.history_, best_epoch=chosen)

    def as_pyod(self) -> PyODAdapter:
        """Return a view of this fitted detector with PyOD's names and signs."""
        check_is_fitted(self)
        return PyODAdapter(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted detector to a folder.

        The folder holds ``model.safetensors`` and ``manifest.json``: data, no code. The
        ``threshold`` in the manifest may be edited: its ``rule``, or its ``anomaly_score`` to
        decide by that value. An older model of the same name is replaced; a failed save
        changes nothing.
        """
        check_is_fitted(self)
        write_model(path, *describe(self))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        encoder: NetworkFactory | None = None,
        decoder: NetworkFactory | None = None,
        device: str = "auto",
    ) -> Self:
        """Read a detector that `save` wrote.

        Parameters
        ----------
        path
            The folder.
        encoder, decoder
            The factories it was fitted with, if it was fitted with your own; a model folder
            holds no code.
        device
            Where to score.
        """
        return restored(cls, path, read_model(path), encoder, decoder, device)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "offset_")

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_scorer", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_ensemble" in state:
            here = torch.cuda.is_available() or state["device_"].type != "cuda"
            self.device_: torch.device = state["device_"] if here else torch.device("cpu")
            self._scorer = self._make_scorer()

    def _check(self, **more: Check) -> None:
        """Refuse parameters that are out of bounds; `more`: what else must hold for some."""
        check_parameters(type(self).__name__, self.get_params(deep=False), more)

    def _prepare(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        *,
        again: bool = False,
        folds: NDArray[np.int64] | None = None,
    ) -> Prepared:
        """Check parameters and data, and say what is to be trained.

        Parameters
        ----------
        X, y
            Of `fit`.
        again
            Whether to go on from the members that there are.
        folds
            Which member leaves out each row, where somebody else says so.
        """
        self._check()
        check_order(X, y)
        X = self._validate(X, reset=not again)
        labels = read_labels(None if y is None else as_array(y), len(X), self.labels)
        self.device_ = resolve_device(self.device)
        normal = normal_rows(labels)
        seed = self._seed = seed_of(self.random_state)
        if not again:
            members = range(self.n_members)
            self.member_seeds_ = [derive(seed, Stream.MEMBER, k) for k in members]
            self.shape_ = X.shape[1:]
            self.scaling_ = self._learn_scaling(X, normal)
        elif len(self.member_seeds_) != self.n_members:
            raise ValueError(
                f"A refit goes on with the {len(self.member_seeds_)} members there are; "
                f"n_members={self.n_members} takes a fit."
            )
        if are_bytes(X):
            rows = torch.from_numpy(X if X.flags.writeable else X.copy())
        else:
            rows = torch.from_numpy(self.scaling_.transform(X).astype(np.float32))
        if folds is None:
            folds = self._leave_out(labels, rows, again=again)
        confirmed = (
            np.flatnonzero(labels == NORMAL) if self.confirmed_weight > 1 else normal[:0]
        )
        problems = problems_of(self, labels, folds, seed)
        problems = weighted(problems, confirmed, self.confirmed_weight)
        self._warn_without_anomalies(problems[0])
        if rows.is_floating_point() and not bool(torch.isfinite(rows).all()):
            raise ValueError(_too_large(X, scaled=self._standardizes(X)))
        self._scoring_dtype = check_architecture(
            self._architecture(),
            [torch.from_numpy(as_numbers(rows[:2].numpy())).float()],
            learned_variance=self.likelihood == "gaussian",
        )
        return Prepared(X, normal, rows, problems, folds, confirmed)

    def _leave_out(
        self, labels: NDArray[np.int64], rows: Tensor, *, again: bool
    ) -> NDArray[np.int64] | None:
        """Return which member leaves out each row; None: all members see all rows.

        The training scores are then those of members that did not see the row.
        """
        return None

    def _parts(self, task: Prepared, *, again: bool = False) -> list[tuple[Detector, Prepared]]:
        """Return what is trained for this detector, itself last."""
        return [(self, task)]

    def _finish(self, task: Prepared, results: Sequence[FitResult]) -> Self:
        """Take the trained members, and set the threshold with them."""
        self._take_members(results[0] if len(results) == 1 else FitResult.joined(results))
        self._direction_penalty: DirectionPenalty | None = None
        self._aggregate_prior: AggregatePrior | None = None
        self._scorer = self._make_scorer()
        self._direction_penalty, self._aggregate_prior = measured(self, task)
        self._scorer = self._make_scorer()
        self._take_scores(training_scores(self, task), task.normal)
        return self

    def _take_members(self, result: FitResult) -> None:
        self.history_ = result.history
        self.best_epoch_ = result.best_epoch
        self.n_iter_ = len(result.history["loss"])
        self._ensemble = result.ensemble.to(torch.device("cpu"), torch.float32)
        self._remember_parameters()

    def _take_scores(self, scores: NDArray[np.float64], normal: NDArray[np.int64]) -> None:
        """Take anomaly scores of the training rows, and set the threshold by normal ones."""
        self.training_scores_ = scores
        self.calibration_scores_ = None
        self._probability = None
        self._normal = normal
        self._set(Threshold(share=self.contamination), warn=False)

    def _member_scorers(self) -> Iterator[Scorer]:
        """Yield a scorer for each member alone."""
        for member in range(self.n_members):
            one = slice(member, member + 1)
            prior, penalty = self._aggregate_prior, self._direction_penalty
            yield self._make_scorer(
                self._ensemble.select(one),
                None if prior is None else prior.select(one),
                None if penalty is None else penalty.select(one),
            )

    def _remember_parameters(self) -> None:
        """Keep what the members were trained with: `set_params` may change the rest."""
        self._fitted_objective = self._objective()
        self._fitted_parameters: dict[str, Any] = dict(self.get_params(deep=False))

    def _make_scorer(
        self,
        ensemble: Ensemble | None = None,
        aggregate_prior: AggregatePrior | None = None,
        direction_penalty: DirectionPenalty | None = None,
    ) -> Scorer:
        """Return the scorer of all members, or of those that are given."""
        if ensemble is None:
            ensemble = self._ensemble
            aggregate_prior, direction_penalty = self._aggregate_prior, self._direction_penalty
        return Scorer(
            ensemble,
            self._fitted_objective,
            device=self.device_,
            dtype=self._scoring_dtype,
            aggregate_prior=aggregate_prior,
            direction_penalty=direction_penalty,
        )

    def _validate(self, X: ArrayLike, *, reset: bool) -> NDArray[Any]:
        own = self.encoder is not None
        X = as_array(X)
        if not own:
            check_axes(X, type(self).__name__)
        try:
            checked: NDArray[Any] = validate_data(
                self,
                X,
                reset=reset,
                dtype=np.uint8 if are_bytes(X) else [np.float64, np.float32],
                allow_nd=own or getattr(X, "ndim", 0) == 4,
                ensure_min_samples=2 if reset else 1,
            )
        except (TypeError, ValueError) as error:
            if any(words in str(error) for words in _NOT_NUMBERS):
                error.add_note(
                    f"{type(self).__name__} takes rows of numbers. For tables with gaps, "
                    "text, categories or times, use aloof.TableDetector or aloof.fit."
                )
            raise
        if self.filters is not None and (own or checked.ndim != 4):
            raise ValueError(
                "filters only apply to aloof's own networks for images (n, channels, height, "
                "width). Set filters=None."
            )
        stated = (Detector.hidden, getattr(self.encoder, "hidden", None))
        if own and tuple(self.hidden) not in stated:  # a factory may state its widths
            raise ValueError(
                f"hidden={tuple(self.hidden)} only applies to aloof's own networks. Leave it "
                "out, and size your own in their factories."
            )
        if checked.ndim == 4 and (not own or are_bytes(checked)):
            check_images(
                checked,
                type(self).__name__,
                standardize=None if self.standardize is None else bool(self.standardize),
                likelihood="squared-error" if own else self.likelihood,
            )
        if self.likelihood == "bernoulli" and (
            self._standardizes(checked) or _outside(checked, 0.0, 1.0)
        ):
            raise ValueError(
                "likelihood='bernoulli' needs X in [0, 1] and standardize=False; use "
                "'squared-error' or 'gaussian' for other data."
            )
        if not reset and checked.shape[1:] != self.shape_:
            raise ValueError(
                f"X has rows of shape {checked.shape[1:]}, but {type(self).__name__} was "
                f"fitted with rows of shape {self.shape_}."
            )
        return checked

    def _standardizes(self, X: NDArray[Any]) -> bool:
        """Whether these rows are to be scaled; without word of it, all but images are."""
        return X.ndim != 4 if self.standardize is None else bool(self.standardize)

    def _learn_scaling(self, X: NDArray[Any], normal: NDArray[np.int64]) -> Scaling:
        """Learn from rows not labelled as anomalies how columns are scaled."""
        if self.standardize == "rank":
            if X.ndim != 2:
                raise ValueError(
                    "standardize='rank' is for rows of numbers (n, n_features); these are of "
                    f"shape {X.shape}. Set standardize=None."
                )
            return RankStandardizer.fit(X[normal])
        if self._standardizes(X):
            return Standardizer.fit(X[normal])
        return Standardizer.identity(X.shape[1:])

    def _reader(self, X: NDArray[Any]) -> RowReader:
        """Return what reads rows as the networks take them, a few at a time."""
        return lambda rows: self.scaling_.transform(as_numbers(X[rows]))

    def _score_samples(self, X: NDArray[Any]) -> NDArray[np.float64]:
        return self._scorer.score(self._reader(X), len(X))

    def _smooth_score(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return anomaly scores without what jumps, to see what small changes to a row do."""
        return self.anomaly_score(X)

    @property
    def _learns(self) -> Method:
        """The method of its networks."""
        return cast(Method, self.method)

    @property
    def title(self) -> str:
        """What it is, in words."""
        return METHODS[self._learns].title

    def _objective(self) -> Objective:
        return Objective(method=self._learns, beta_kl=self.beta_kl, likelihood=self.likelihood)

    def _config(self, problem: VAEProblem) -> TrainingConfig:
        max_epochs = self._max_epochs(problem)
        annealing = self.annealing_epochs
        return TrainingConfig(
            max_epochs=max_epochs,
            warmup_epochs=0,
            annealing_epochs=2 * max_epochs // 15 if annealing is None else annealing,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            lr_schedule=self.lr_schedule,
            max_grad_norm=self.max_grad_norm,
            trim=self.trim,
            patience=self.patience,
            precision=self.precision,
            compile=self.compile,
        )

    def _max_epochs(self, problem: VAEProblem) -> int:
        if self.max_epochs is not None:
            return self.max_epochs
        enough = _ENOUGH_STEPS // problem.task().n_steps(self.batch_size)
        return min(_MOST_EPOCHS, max(_FEWEST_EPOCHS, enough))

    def _architecture(self) -> Architecture:
        if self.encoder is not None and self.decoder is not None:
            encoder, decoder = self.encoder, self.decoder
        elif len(self.shape_) == 3:
            filters = None if self.filters is None else tuple(self.filters)
            encoder = partial(ConvEncoder, filters=filters, hidden=tuple(self.hidden))
            decoder = partial(ConvDecoder, filters=filters, hidden=tuple(self.hidden))
        else:
            hidden = tuple(self.hidden)
            encoder = partial(MLPEncoder, hidden=hidden)
            decoder = partial(
                MLPDecoder, hidden=hidden, learn_variance=self.likelihood == "gaussian"
            )
        return Architecture(
            partial(encoder, self.shape_, self.latent_dim),
            partial(decoder, self.shape_, self.latent_dim),
            self.latent_dim,
        )

    def _describe(self, manifest: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Add what only this kind of detector has to what is saved of it."""

    def _restore(self, manifest: Mapping[str, Any], tensors: SavedTensors, folder: str) -> None:
        """Take it back."""

    def _knows_direction(self, problem: VAEProblem) -> bool:
        """Whether the score has a direction that leads to anomalies."""
        return False

    def _warn_without_anomalies(self, problem: VAEProblem) -> None:
        """Say so where a method that uses labelled anomalies has none."""


def _too_large(X: NDArray[Any], *, scaled: bool) -> str:
    """Say which value is too large to learn from, and what to do."""
    place = np.unravel_index(np.abs(X).argmax(), X.shape)
    words = f"X holds values too large for float32, such as {X[place]:.3g} in row {place[0]}."
    if not scaled:
        return f"{words} Set standardize=True."
    return f"{words} Remove them, or take their logarithm; aloof.TableDetector takes them."


def _outside(X: NDArray[Any], low: float, high: float) -> bool:
    return X.dtype != np.uint8 and bool(X.min() < low or X.max() > high)
