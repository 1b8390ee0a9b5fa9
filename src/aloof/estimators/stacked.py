"""Many detectors, one computation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from numpy.typing import ArrayLike

from aloof.estimators._base import Detector
from aloof.estimators._fitting import Train, fit_together
from aloof.training import ProgressCallback
from aloof.vae import train

__all__ = ["fit_many"]


def fit_many(
    detectors: Sequence[Detector],
    data: Sequence[tuple[ArrayLike, ArrayLike | None]],
    *,
    checkpoint: str | Path | None = None,
    on_epoch: ProgressCallback | None = None,
    train: Train = train,
) -> None:
    """Fit each detector to its own data, all members of all detectors in one stack.

    Gives the same result as fitting one after the other, up to floating-point rounding, in a
    fraction of the time. Use it for cross-validation, repeated splits, or a grid over numbers
    such as `beta_kl`, `alpha` and `gamma`. Detectors that differ in anything else (method,
    networks, schedule) or in the size of their batches form separate stacks.

    Parameters
    ----------
    detectors
        What to fit, in place.
    data
        ``(X, y)`` for each detector.
    checkpoint
        File to keep the state of the run in, as the detectors' own `checkpoint` does for a
        single fit.
    on_epoch
        Called after each epoch. Without it, a progress bar is shown if any of the detectors
        is verbose.
    train
        What trains networks, with the signature of `aloof.vae.train`; `aloof.ray.fit_many` has
        one that does so on a cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from aloof import VAE, fit_many
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> grid = [VAE(beta_kl=b, max_epochs=5, random_state=0) for b in (0.01, 0.1, 1.0)]
    >>> fit_many(grid, [(X, None)] * 3)
    >>> [detector.history_["loss"].shape for detector in grid]
    [(5, 5), (5, 5), (5, 5)]
    """
    if len(detectors) != len(data):
        raise ValueError(
            f"fit_many needs one (X, y) for each detector; got {len(detectors)} detectors and "
            f"{len(data)} pairs."
        )
    for pair in data:
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise ValueError(
                f"fit_many needs a list with one (X, y) for each detector; got a "
                f"{type(pair).__name__} in it. Without labels, y is None."
            )
    if len({id(detector) for detector in detectors}) < len(detectors):
        raise ValueError(
            "fit_many got the same detector twice, which would keep one fit only. Make one for "
            "each pair, such as with sklearn.base.clone."
        )
    if any(detector.checkpoint is not None for detector in detectors):
        raise ValueError("Pass the checkpoint to fit_many, not to its detectors.")
    shows = on_epoch is None and any(detector.verbose for detector in detectors)
    fit_together(
        detectors,
        data,
        checkpoint=checkpoint,
        on_epoch=on_epoch,
        title=f"{len(detectors)} detectors" if shows else None,
        numbered=True,
        train=train,
    )
