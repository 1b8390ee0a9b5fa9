"""A committee: views of the table that differ, and evidence that adds up."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from aloof.calibration import Evidence, Threshold
from aloof.estimators._arrays import as_array
from aloof.estimators._base import Detector
from aloof.estimators._committee_tensors import (
    restored_evidence,
    restored_forest,
    restored_rows,
)
from aloof.estimators._distilling import distilled
from aloof.estimators._fitting import Prepared, fit_together
from aloof.estimators._folds import NO_FOLD, KnownRows, enough_for, folds_of
from aloof.estimators._hidden import estimate_hidden
from aloof.estimators._parameters import BOOLEAN, Check, integer, one_of, or_none
from aloof.estimators._problems import with_confirmed
from aloof.estimators._saving import describe, restored
from aloof.estimators.dual_prior import DualPriorVAE
from aloof.estimators.max_min import MaxMinVAE
from aloof.estimators.vae import VAE
from aloof.exceptions import LabelWarning
from aloof.labels import ANOMALY, NORMAL, read_labels
from aloof.persistence import SavedTensors, section_of
from aloof.scoring import Explanation, explain_errors, feature_errors
from aloof.shallow import Forest, Neighbours
from aloof.training import ProgressCallback, Stream, derive
from aloof.vae import FitResult, Method, TrainingConfig, VAEProblem

__all__ = ["Committee"]

_OWN, _MAX_MIN, _RANKS, _PLAIN, _NEIGHBOURS = "own", "max-min", "ranks", "plain", "neighbours"

# The views that are detectors, beside the DP-VAE that a committee is itself.
_VIEWS: dict[str, type[Detector]] = {_MAX_MIN: MaxMinVAE, _RANKS: DualPriorVAE, _PLAIN: VAE}

# What trees see beside the values: the errors of these views, and the scores of those.
_TREES = {"trees": (_OWN, (_OWN,)), "trees-plain": (_PLAIN, (_PLAIN, _NEIGHBOURS))}

# Most rows that nearest neighbours are looked for among.
_MOST_NEIGHBOURS = 1024

# What an average normal row has: trees count in so far as labelled anomalies that they did not
# see have more. Fewer labels than folds cannot say; so many would make trees count in full.
_AVERAGE, _ENOUGH_LABELS = 1.0, 10


_ERRORS = frozenset(view for view, _ in _TREES.values())


class _Seen(NamedTuple):
    """What the views see of some rows: values, errors in each feature, anomaly scores."""

    rows: NDArray[np.float64]
    errors: dict[str, NDArray[np.float64]]
    scores: dict[str, NDArray[np.float64]]

    def by_trees(self, name: str) -> NDArray[np.float64]:
        """Return what trees see."""
        view, scores = _TREES[name]
        return np.column_stack(
            [self.rows, self.errors[view], *(self.scores[n] for n in scores)]
        )


@dataclass(kw_only=True, repr=False, eq=False)
class Committee(DualPriorVAE):
    """Several views of a table, whose evidence adds up.

    No detector is best on all tables: trees win where labelled anomalies are like those to
    come, VAEs where they are not. A committee has both. Its views are DP-VAE, MML-VAE, DP-VAE
    on ranks in place of values, the plain VAE that they were before anomalies joined, and
    nearest neighbours. Trees then learn to tell labelled anomalies from other rows, by their
    values and by how wrong the VAEs have them.

    Every member leaves out a part of the rows, so that each training row has a score from a
    member that did not see it. Against these scores of normal rows, those of any view become
    evidence: minus the logarithm of a p-value. The anomaly score is the mean evidence of the
    views, plus that of the trees. Evidence is never negative: trees, which know nothing of
    kinds of anomalies that nobody labelled, speak for an anomaly or not at all.

    Without a labelled anomaly it is the plain VAE, and `fit` says so.

    Parameters
    ----------
    n_trees
        Trees, shared out among the members. A single member has no rows to leave out, and there
        are no trees.

    Attributes
    ----------
    tree_weight_
        How much the evidence of trees counts: more with more labels, and less where trees do
        not recognise labelled anomalies that they did not see.
    hidden_share_
        The share of rows without a label that look like labelled anomalies, as far as members
        can tell that did not see them; 0 where there are too few labels to say.
    suspects_
        Which training rows these are, the most anomalous first.

    Notes
    -----
    For rows of numbers, with aloof's own networks. `latent`, `reconstruct`, `prototypes` and
    `history_` are those of the DP-VAE among its views.

    Examples
    --------
    >>> import numpy as np
    >>> from aloof import Committee
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(size=(200, 3)), rng.normal(size=(5, 3)) + [3, 0, 0]]
    >>> y = np.r_[np.zeros(200), np.ones(5)]
    >>> detector = Committee(n_members=2, max_epochs=30, random_state=0).fit(X, y)
    >>> scores = detector.anomaly_score([[0, 0, 0], [3, 0, 0]])
    >>> bool(scores[1] > scores[0])
    True
    """

    n_trees: int = 400

    method: ClassVar[str] = "committee"

    @property
    def _learns(self) -> Method:
        return "dp"

    @property
    def title(self) -> str:
        """What it is, in words."""
        return "Committee"

    def explain(self, X: ArrayLike) -> Explanation:
        """Return what every feature contributes to the anomaly score of each row.

        Each view shares its evidence out among the features: a VAE as its own explanation
        does, nearest neighbours by how far away they are, trees by which splits led to
        anomalies. The contributions of a row add up to its anomaly score.
        """
        check_is_fitted(self)
        explanations: dict[str, Explanation] = {}
        seen = self._see(self._validate(X, reset=False), explanations)
        own = explanations[_OWN]
        reconstruction, latent = np.zeros_like(own.latent), np.zeros_like(own.latent)
        for name, scores in seen.scores.items():
            found, evidence = explanations[name], self._evidence[name](scores)
            evidence /= len(seen.scores)
            share = _shares(found.reconstruction, found.latent)
            reconstruction += share[0] * evidence[:, None]
            latent += share[1] * evidence[:, None]
        shares = {}
        for name in self._forests:
            shares[name], added = self._explain_trees(name, seen)
            latent += added
        score = self._added_up(seen.scores, shares).astype(np.float32).astype(np.float64)
        # What rounding left over goes to the largest part.
        total = reconstruction + latent
        latent[np.arange(len(total)), total.argmax(1)] += score - total.sum(1)
        expected = self.scaling_.inverse(own.expected)
        return Explanation(reconstruction, latent, score, expected)

    def distil(
        self, X: ArrayLike, y: ArrayLike | None = None, *, n_members: int = 1
    ) -> DualPriorVAE:
        """Return a DP-VAE that ranks rows nearly as the committee does, for speed.

        Its members are some of the committee's own, trained further to give its scores. These
        have the unit of a VAE, not of evidence. The committee is left as it is: keep it to
        refit. The new detector is not calibrated, and its threshold is that of a fresh fit.

        Parameters
        ----------
        X
            Rows as in `fit`, best the same ones.
        y
            Labels as in `fit`. Without them it learns less about rows like labelled anomalies.
        n_members
            How many members it is to have.

        Returns
        -------
        The new detector.
        """
        check_is_fitted(self)
        return distilled(self, DualPriorVAE, X, y, n_members)

    def _explain_trees(
        self, name: str, seen: _Seen
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what trees see in rows, and what they add, shared out among the features."""
        n, inputs = self.n_features_in_, seen.by_trees(name)
        shares, moved = self._forests[name].explain(inputs)
        np.maximum(moved, 0.0, out=moved)
        # An error in a feature speaks for the feature, and a view's score for its errors.
        found, errors = moved[:, :n] + moved[:, n : 2 * n], inputs[:, n : 2 * n]
        found += moved[:, 2 * n :].sum(1, keepdims=True) * _shares(errors)[0]
        added = self._evidence[name](shares) * (self.tree_weight_ / len(self._forests))
        return shares, _shares(found)[0] * added[:, None]

    def _score_samples(self, X: NDArray[Any]) -> NDArray[np.float64]:
        scores = self._evidence_of(self._see(X))
        return -scores.astype(np.float32).astype(np.float64)

    def _smooth_score(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the evidence of the views alone: trees change their minds in jumps."""
        check_is_fitted(self)
        return self._mean_evidence(self._see(self._validate(X, reset=False)).scores)

    def _views(self) -> Iterator[tuple[str, Detector]]:
        """Yield the views that are detectors; the first is this one's own networks."""
        yield _OWN, self
        yield from self._others.items()

    def _see(
        self, X: NDArray[Any], explanations: dict[str, Explanation] | None = None
    ) -> _Seen:
        """Look at rows with every view but the trees, and keep explanations of what they see.

        The one of nearest neighbours has only how far away they are.
        """
        seen = _Seen(self.scaling_.transform(X), {}, {})
        for name, view in self._views():
            reader, scorer = view._reader(X), view._scorer
            if explanations is not None:
                found, seen.errors[name] = explain_errors(scorer, reader, len(X))
                explanations[name], seen.scores[name] = found, found.score
            elif self._forests and name in _ERRORS:
                seen.errors[name], seen.scores[name] = feature_errors(scorer, reader, len(X))
            else:
                seen.scores[name] = -scorer.score(reader, len(X))
        if self._neighbours is None:
            return seen
        if explanations is None:
            seen.scores[_NEIGHBOURS] = self._neighbours.distance(seen.rows)
        else:
            score, apart = self._neighbours.explain(seen.rows)
            nothing = np.zeros_like(apart)
            explanations[_NEIGHBOURS] = Explanation(apart, nothing, score, nothing)
            seen.scores[_NEIGHBOURS] = score
        return seen

    def _evidence_of(self, seen: _Seen) -> NDArray[np.float64]:
        """Return the mean evidence of the views, and what trees add to it."""
        shares = {
            name: forest.score(seen.by_trees(name)) for name, forest in self._forests.items()
        }
        return self._added_up(seen.scores, shares)

    def _added_up(
        self,
        scores: Mapping[str, NDArray[np.float64]],
        shares: Mapping[str, NDArray[np.float64]],
    ) -> NDArray[np.float64]:
        """Return the evidence in scores of views, and in shares of anomalies trees see."""
        total: NDArray[np.float64] = self._mean_evidence(scores)
        if shares:
            total = total + self.tree_weight_ * self._mean_evidence(shares)
        return total

    def _mean_evidence(self, scores: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
        found = [self._evidence[name](values) for name, values in scores.items()]
        mean: NDArray[np.float64] = np.mean(found, axis=0)
        return mean

    def _check(self, **more: Check) -> None:
        """Refuse parameters that a committee cannot have."""
        super()._check(
            n_trees=integer(1),
            likelihood=one_of(("squared-error", "gaussian")),
            separate_encoder=(lambda v: v is False, "False"),
            patience=(lambda v: v is None, "None: its members leave out rows already"),
            encoder=(lambda v: v is None, "None: a committee has aloof's own networks"),
            max_epochs=(or_none(integer(2))[0], "at least 2 (on the command line --epochs)"),
            warmup_epochs=or_none(integer(1)),
            standardize=or_none(BOOLEAN),
            **more,
        )

    def refit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        max_epochs: int | None = None,
        on_epoch: ProgressCallback | None = None,
    ) -> Self:
        """Go on learning from where the views are, with other rows or other labels.

        As in `aloof.DualPriorVAE.refit`; trees and neighbours are found anew. Each member goes
        on leaving out the rows that it left out before, so that scores of training rows remain
        those of members that never saw them. A committee that had no labelled anomaly yet, or
        too few rows to leave some out, is fitted anew where it has them now.

        Parameters
        ----------
        X, y, max_epochs, on_epoch
            As in `aloof.DualPriorVAE.refit`.

        Returns
        -------
        The committee.
        """
        check_is_fitted(self)
        with warnings.catch_warnings():  # said later
            warnings.simplefilter("ignore", LabelWarning)
            y_or_none = None if y is None else as_array(y)
            labels = read_labels(y_or_none, len(as_array(X)), self.labels)
        n_normal = int((labels != ANOMALY).sum())
        labelled = n_normal < len(labels)
        can = labelled and enough_for(self.n_members, n_normal)
        if labelled == bool(self._others) and can == (self._known is not None):
            return super().refit(X, y, max_epochs=max_epochs, on_epoch=on_epoch)
        known = self.max_epochs
        title = f"{type(self).__name__} x {self.n_members}"
        shows = self.verbose and on_epoch is None
        try:
            self.max_epochs = known if max_epochs is None else max_epochs
            fit_together([self], [(X, y)], on_epoch=on_epoch, title=title if shows else None)
        finally:
            self.max_epochs = known
        return self

    def _prepare(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        *,
        again: bool = False,
        folds: NDArray[np.int64] | None = None,
    ) -> Prepared:
        if getattr(X, "ndim", 2) > 2:
            raise ValueError(
                f"{type(self).__name__} takes rows of numbers (n, n_features); got "
                f"{X.ndim} dimensions. Use DualPriorVAE for images."  # type: ignore[union-attr]
            )
        return super()._prepare(X, y, again=again, folds=folds)

    def _leave_out(
        self, labels: NDArray[np.int64], rows: Tensor, *, again: bool
    ) -> NDArray[np.int64] | None:
        n_normal = int((labels != ANOMALY).sum())
        if n_normal == len(labels) or not enough_for(self.n_members, n_normal):
            return None
        if again and self._known is not None:
            return self._known.folds_of(rows.numpy(), labels, self.n_members, self._seed)
        return folds_of(labels, self.n_members, self._seed)

    def _parts(self, task: Prepared, *, again: bool = False) -> list[tuple[Detector, Prepared]]:
        """Return the views to train; at first, the plain VAE is the warm-up of two of them."""
        before = self._others if again else {}
        self._others: dict[str, Detector] = {}
        if not task.problems[0].uses_anomalies:
            return [(self, task)]
        config = self._config(task.problems[0])
        if config.warmup_epochs >= config.max_epochs:
            raise ValueError(
                f"warmup_epochs={config.warmup_epochs} leaves no epoch in which labelled "
                f"anomalies join: there are {config.max_epochs}. Set fewer."
            )
        y = np.ones(len(task.X))
        y[task.normal] = np.nan
        y[task.confirmed] = NORMAL
        parts: list[tuple[Detector, Prepared]] = []
        for name, kind in _VIEWS.items():
            own = self._view_parameters(kind, config, ranks=name == _RANKS)
            # What fails later leaves the views that there are as they were.
            view = copy(before[name]).set_params(**own) if again else kind(**own)
            with warnings.catch_warnings():  # what there is to say about labels was said
                warnings.simplefilter("ignore", LabelWarning)
                prepared = view._prepare(task.X, y, again=again, folds=task.folds)
            self._others[name] = view
            if name == _PLAIN and not again:
                self._plain_task = prepared
            else:
                parts.append((view, prepared))
        return [*parts, (self, task)]

    def _warmup_epochs(self, problem: VAEProblem) -> int:
        return max(1, super()._warmup_epochs(problem))  # the plain VAE is what it leads to

    def _view_parameters(
        self, kind: type[Detector], config: TrainingConfig, *, ranks: bool
    ) -> dict[str, Any]:
        """Return the parameters of this detector that a view has, too."""
        known = kind().get_params(deep=False)
        shared = {k: v for k, v in self.get_params(deep=False).items() if k in known}
        own = {"labels": "aloof", "random_state": self._seed, "checkpoint": None}
        if "warmup_epochs" in known:
            own["warmup_epochs"] = config.warmup_epochs  # as here, so that it can be shared
        if ranks:
            own["standardize"] = "rank"
        return {**shared, **own}

    def _finish(self, task: Prepared, results: Sequence[FitResult]) -> Self:
        """Take the trained views, grow trees, and weigh what each says by held-out rows."""
        super()._finish(task, results)
        self._forests: dict[str, Forest] = {}
        self._neighbours: Neighbours | None = None
        self.tree_weight_, self.hidden_share_ = 0.0, 0.0
        self.suspects_ = np.empty(0, np.int64)
        self._known: KnownRows | None = None
        if task.folds is not None:
            self._known = KnownRows.of(task.rows.numpy(), task.folds)
        if "_plain_task" in self.__dict__:
            warmups = [result.warmup for result in results]
            plain, prepared = self._others[_PLAIN], self.__dict__.pop("_plain_task")
            plain._finish(prepared, [found for found in warmups if found is not None])
        seen = _Seen(
            self.scaling_.transform(task.X),
            {},
            {name: view.training_scores_ for name, view in self._views()},
        )
        self._evidence = {
            name: Evidence.fit(scores[task.normal]) for name, scores in seen.scores.items()
        }
        shares = self._complete(task, seen) if self._others else {}
        scores = self._added_up(seen.scores, shares)
        self.training_scores_ = scores.astype(np.float32).astype(np.float64)
        self._set(Threshold(share=self.contamination), warn=False)
        return self

    def _complete(self, task: Prepared, seen: _Seen) -> dict[str, NDArray[np.float64]]:
        """Grow trees and find neighbours; return what trees say of rows they did not see.

        Trees that see errors of DP-VAE come first: with them, rows that look like labelled
        anomalies are found, and are no neighbours of anybody.
        """
        shares: dict[str, NDArray[np.float64]] = {}
        for number, name in enumerate(_TREES):
            if number:
                self._suspect(task, self._added_up(seen.scores, shares))
                seen.scores[_NEIGHBOURS] = self._find_neighbours(task, seen.rows)
            if task.folds is not None:  # else there are too few rows to leave some out
                view = _TREES[name][0]
                seen.errors[view] = self._training_errors(dict(self._views())[view], task)
                shares[name] = self._grow(name, task, seen.by_trees(name))
                self._weigh(task, shares)
        return shares

    def _training_errors(self, view: Detector, task: Prepared) -> NDArray[np.float64]:
        """Return errors in training rows, of members that did not see them."""
        assert task.folds is not None
        rows = view.scaling_.transform(task.X)
        found = np.empty_like(rows)
        for fold, scorer in [(NO_FOLD, view._scorer), *enumerate(view._member_scorers())]:
            own = np.flatnonzero(task.folds == fold)
            if len(own):
                found[own] = feature_errors(scorer, partial(_some, rows[own]), len(own))[0]
        return found

    def _grow(
        self, name: str, task: Prepared, inputs: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Grow trees for each fold, and return what they say of the rows they did not see."""
        assert task.folds is not None
        anomalous = np.ones(len(inputs), np.bool_)
        anomalous[task.normal] = False
        sure = np.zeros(len(inputs), np.bool_)
        sure[task.confirmed] = True
        parts, shares = [], np.empty(len(inputs))
        n_trees = max(1, round(self.n_trees / self.n_members / len(_TREES)))
        for member, seed in enumerate(self.member_seeds_):
            seen, own = task.folds != member, task.folds == member
            stream = derive(seed, Stream.SPLIT, list(_TREES).index(name))
            forest = Forest.fit(
                inputs[seen],
                anomalous[seen],
                n_trees=n_trees,
                seed=stream,
                confirmed=sure[seen],
            )
            shares[own] = forest.score(inputs[own])
            parts.append(forest)
        self._forests[name] = Forest.joined(parts)
        shared = np.flatnonzero(task.folds == NO_FOLD)
        if len(shared):
            shares[shared] = self._forests[name].score(inputs[shared])
        # Trees that are sure of all rows they did not see do not say how far is far: then one
        # tree more that finds a row anomalous is one more unit.
        one_tree = 1.0 / self._forests[name].n_trees
        self._evidence[name] = Evidence.fit(shares[task.normal], resolution=one_tree)
        return shares

    def _weigh(self, task: Prepared, shares: Mapping[str, NDArray[np.float64]]) -> None:
        """Let trees count as far as they recognise labelled anomalies they did not see."""
        if len(task.left_out):
            evidence = self._mean_evidence(shares)[task.left_out]
            recognised = float(evidence.mean()) - _AVERAGE
        else:
            recognised = (len(task.X) - len(task.normal)) / _ENOUGH_LABELS
        self.tree_weight_ = min(1.0, max(0.0, recognised))

    def _suspect(self, task: Prepared, scores: NDArray[np.float64]) -> None:
        """Find rows without a label that look like labelled anomalies."""
        unknown = np.setdiff1d(task.normal, task.confirmed)
        if not len(task.left_out) or not len(unknown):
            return
        share = estimate_hidden(scores[unknown], scores[task.left_out])
        n = round(share * len(unknown))
        order = np.argsort(-scores[unknown], kind="stable")
        self.hidden_share_, self.suspects_ = share, unknown[order[:n]]

    def _find_neighbours(
        self, task: Prepared, rows: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Choose rows to measure distances to, and return those of the training rows."""
        trusted = np.setdiff1d(task.normal, self.suspects_)
        chosen = with_confirmed(trusted, task.confirmed, min(_MOST_NEIGHBOURS, len(trusted)))
        self._neighbours = Neighbours(rows[chosen])
        own = np.full(len(rows), -1)
        own[chosen] = np.arange(len(chosen))
        distances = self._neighbours.distance(rows, own)
        self._evidence[_NEIGHBOURS] = Evidence.fit(distances[task.normal])
        return distances

    def _describe(self, manifest: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        views = {}
        for name, view in self._others.items():
            views[name], own = describe(view)
            tensors |= {f"view.{name}.{key}": value for key, value in own.items()}
        manifest["committee"] = {
            "tree_weight": self.tree_weight_,
            "hidden_share": self.hidden_share_,
            "views": views,
        }
        tensors["suspects"] = torch.from_numpy(self.suspects_)
        if self._known is not None:
            tensors["known.digests"] = torch.from_numpy(self._known.digests)
            tensors["known.folds"] = torch.from_numpy(self._known.folds)
        for name, evidence in self._evidence.items():
            for part in fields(evidence):
                value = torch.tensor(getattr(evidence, part.name), dtype=torch.float64)
                tensors[f"evidence.{name}.{part.name}"] = value
        if self._neighbours is not None:
            tensors["neighbours"] = torch.from_numpy(self._neighbours.rows)
        for name, forest in self._forests.items():
            for part in fields(forest):
                tensors[f"{name}.{part.name}"] = torch.tensor(getattr(forest, part.name))

    def _restore(self, manifest: Mapping[str, Any], tensors: SavedTensors, folder: str) -> None:
        from aloof.estimators._manifest import CommitteeSection

        saved = section_of(CommitteeSection, manifest, folder, "committee")
        self.tree_weight_, self.hidden_share_ = saved.tree_weight, saved.hidden_share
        self.suspects_ = tensors.take("suspects", torch.int64, None, empty=True).numpy()
        self._known = None
        if "known.digests" in tensors:
            self._known = restored_rows(tensors, self.n_members)
        self._others = {}
        for name, kind in _VIEWS.items() if saved.views else ():
            own = tensors.take_all(f"view.{name}")
            if name not in saved.views:
                raise ValueError(f"the view {name!r} is missing")
            model = dict(saved.views[name]), own
            self._others[name] = restored(kind, folder, model, None, None, str(self.device_))
        names = [name for name, _ in self._views()]
        self._neighbours, self._forests = None, {}
        if "neighbours" in tensors:
            rows = tensors.take("neighbours", torch.float64, None, self.n_features_in_)
            self._neighbours = Neighbours(rows.numpy())
            names.append(_NEIGHBOURS)
        for name, (_, scores) in _TREES.items():
            if f"{name}.roots" in tensors:
                width = 2 * self.n_features_in_ + len(scores)
                self._forests[name] = restored_forest(tensors, name, width)
                names.append(name)
        self._evidence = {name: restored_evidence(tensors, name) for name in names}


def _some(rows: NDArray[np.float64], chunk: slice) -> NDArray[np.float64]:
    return rows[chunk]


def _shares(*parts: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return sizes as shares of a row's sum; equal shares where all are nothing."""
    sizes = [np.abs(part) for part in parts]
    total = np.sum([size.sum(1) for size in sizes], axis=0)
    nothing = ~(total > 0)
    total[nothing] = 1.0
    for size in sizes:
        size /= total[:, None]
        size[nothing] = 1.0 / sum(part.shape[1] for part in parts)
    return sizes
