"""Many deep baselines, one computation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from aloof.baselines.contract import Baseline
from aloof.baselines.deep import DeepBaseline
from aloof.baselines.hybrid import Hybrid
from aloof.baselines.unfair import Unfair
from aloof.labels import with_gaps
from aloof.training import ProgressCallback

__all__ = ["fit_many", "trains_networks"]

_Prepared = tuple[NDArray[Any], NDArray[np.int64], int]  # rows, labels, seed


def trains_networks(baseline: Any) -> bool:
    """Return whether fits of a baseline to several data sets can be one stack."""
    if isinstance(baseline, Unfair):
        return trains_networks(baseline.plain(0))
    return isinstance(baseline, DeepBaseline)


def fit_many(
    baselines: Sequence[Baseline],
    data: Sequence[tuple[ArrayLike, ArrayLike | None]],
    *,
    on_epoch: ProgressCallback | None = None,
) -> None:
    """Fit each baseline to its own rows, all members of all baselines in one stack.

    The result is that of fitting one after the other, up to floating-point rounding, in a
    fraction of the time: for repeated splits.

    Parameters
    ----------
    baselines
        What to fit, in place: of one class, equal but for `random_state`, and all train
        networks. Hybrids may have detectors of their own.
    data
        ``(X, y)`` for each baseline.
    on_epoch
        Called after each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> from aloof.baselines import Autoencoder, fit_many
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> both = [Autoencoder(max_epochs=2, random_state=seed) for seed in (0, 1)]
    >>> fit_many(both, [(X, None), (2 * X, None)])
    >>> both[1].anomaly_score(X).shape
    (60,)
    """
    if len(baselines) != len(data):
        raise ValueError(
            f"fit_many needs one (X, y) for each baseline; got {len(baselines)} baselines and "
            f"{len(data)} pairs."
        )
    first = baselines[0]
    if not trains_networks(first):
        raise ValueError(
            f"{type(first).__name__} trains no networks. Fit them one after the other."
        )
    if any(_options(other) != _options(first) for other in baselines):
        raise ValueError("fit_many needs baselines that differ only in their random_state.")
    prepared = [own._prepared(X, y) for own, (X, y) in zip(baselines, data, strict=True)]
    _fit(baselines, prepared, on_epoch)
    for own, (_, _, seed) in zip(baselines, prepared, strict=True):
        own.seed_ = seed


def _fit(
    baselines: Sequence[Any], prepared: Sequence[_Prepared], on_epoch: ProgressCallback | None
) -> None:
    first, both = baselines[0], list(zip(baselines, prepared, strict=True))
    rows = [(X, with_gaps(labels)) for X, labels, _ in prepared]
    if isinstance(first, Unfair):
        hybrids = [own.plain(seed) for own, (_, _, seed) in both]
        fit_many(hybrids, rows, on_epoch=on_epoch)
        for hybrid, (own, (X, labels, _)) in zip(hybrids, both, strict=True):
            own._tune(hybrid, X, labels)
    elif isinstance(first, Hybrid):
        autoencoders = [own._autoencoder(seed) for own, (_, _, seed) in both]
        fit_many(autoencoders, rows, on_epoch=on_epoch)
        for autoencoder, (own, (X, labels, seed)) in zip(autoencoders, both, strict=True):
            own._detect(autoencoder, X, labels, seed)
    else:
        parts, problems, start = [], [], 0
        for own, (X, labels, seed) in both:
            parts.append(own._rows(X))
            problem = own._problem(labels, seed)
            problems.append(
                replace(problem, normal=problem.normal + start, anomaly=problem.anomaly + start)
            )
            start += len(X)
        fitted = first.fit_problems(torch.cat(parts), problems, on_epoch=on_epoch)
        for own, members in zip(baselines, fitted, strict=True):
            own.fitted_, own.device_ = members, first.device_


def _options(baseline: Baseline) -> tuple[type, dict[str, Any]]:
    """Return what must be equal for two baselines to be one stack."""
    options = baseline.get_params(deep=False)
    for name in ("random_state", "detector"):
        options.pop(name, None)
    return type(baseline), options
