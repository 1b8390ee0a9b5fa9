"""Who is normal, who is a labelled anomaly, who is tested: the paper's protocol for images.

One class is normal. Labelled anomalies are of exactly one other class; the test is on all
classes. A fifth of the training rows is held out for choices. Every draw is a function of the
seed and the classes: the normal rows do not depend on the ratios, and the labelled anomalies of
a smaller ratio are among those of a larger one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import ExperimentError

__all__ = ["ImageSplit", "class_pairs", "make_image_split"]

_HELD_OUT = 0.2


@dataclass(frozen=True, eq=False)
class ImageSplit:
    """Rows of the training set, by number.

    Attributes
    ----------
    normal
        Taken as normal: of the normal class, and hidden anomalies where there is pollution.
    anomaly
        Labelled anomalies.
    held_normal, held_anomaly
        For choices: never trained on, never tested on.
    n_hidden
        How many of `normal` are hidden anomalies.
    """

    normal: NDArray[np.int64]
    anomaly: NDArray[np.int64]
    held_normal: NDArray[np.int64]
    held_anomaly: NDArray[np.int64]
    n_hidden: int

    @property
    def sha256(self) -> str:
        """A digest of the rows: another NumPy might draw others from the same seed."""
        digest = hashlib.sha256()
        for rows in (self.normal, self.anomaly, self.held_normal, self.held_anomaly):
            digest.update(len(rows).to_bytes(8, "little"))
            digest.update(np.ascontiguousarray(rows, "<i8").tobytes())
        return digest.hexdigest()


def class_pairs(n_classes: int, n_problems: int) -> list[tuple[int, int]]:
    """Return pairs of a normal class and the class of its labelled anomalies.

    As many problems as classes: each class with the next one. Otherwise all pairs.

    Examples
    --------
    >>> class_pairs(3, 3)
    [(0, 1), (1, 2), (2, 0)]
    >>> class_pairs(3, 6)
    [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    """
    everyone = range(n_classes)
    if n_problems == n_classes:
        return [(normal, (normal + 1) % n_classes) for normal in everyone]
    pairs = [(normal, other) for normal in everyone for other in everyone if normal != other]
    if n_problems != len(pairs):
        raise ExperimentError(
            f"With {n_classes} classes there are {n_classes} problems (each class with one "
            f"other) or {len(pairs)} (all pairs); got {n_problems}."
        )
    return pairs


def make_image_split(
    labels: NDArray[np.int64],
    normal: int,
    anomaly: int,
    *,
    gamma_l: float,
    gamma_p: float = 0.0,
    seed: int = 0,
) -> ImageSplit:
    """Draw the rows of one problem.

    Parameters
    ----------
    labels
        The class of every training row.
    normal, anomaly
        The normal class and that of the labelled anomalies.
    gamma_l
        Share of labelled anomalies among them and the normal rows.
    gamma_p
        Share of hidden anomalies, of all other classes, among the rows taken as normal.
    seed
        Of the draws.
    """
    if not 0 <= gamma_l < 1 or not 0 <= gamma_p < 1:
        raise ExperimentError(
            f"gamma_l and gamma_p must be at least 0 and less than 1; got {gamma_l} and "
            f"{gamma_p}."
        )
    own = np.random.default_rng([seed, normal]).permutation(np.flatnonzero(labels == normal))
    n_held = round(_HELD_OUT * len(own))
    rows, held_normal = own[n_held:], own[:n_held]
    others = np.random.default_rng([seed, normal, anomaly]).permutation(
        np.flatnonzero(labels == anomaly)
    )
    n_held = _part_of(gamma_l, n_held)
    n_labelled = _part_of(gamma_l, len(rows))
    if gamma_l and not n_labelled:
        raise ExperimentError(
            f"gamma_l = {gamma_l:g} of {len(rows)} normal rows is less than one labelled "
            "anomaly."
        )
    if n_held + n_labelled > len(others):
        raise ExperimentError(
            f"gamma_l = {gamma_l:g} needs {n_held + n_labelled} labelled anomalies, but class "
            f"{anomaly} has {len(others)} rows."
        )
    # From both ends, so that a smaller ratio's labelled anomalies are among a larger one's.
    labelled, held_anomaly = others[:n_labelled], others[len(others) - n_held :]
    strange = np.random.default_rng([seed, normal, anomaly, 1]).permutation(
        np.flatnonzero(labels != normal)
    )
    strange = strange[~np.isin(strange, np.concatenate([labelled, held_anomaly]))]
    n_hidden = _part_of(gamma_p, len(rows))
    if n_hidden > len(strange):
        raise ExperimentError(
            f"gamma_p = {gamma_p:g} needs {n_hidden} hidden anomalies among {len(rows)} "
            f"normal rows, but the other classes have {len(strange)}."
        )
    drawn = strange[:n_hidden]
    return ImageSplit(
        normal=np.sort(np.concatenate([rows, drawn])),
        anomaly=np.sort(labelled),
        held_normal=np.sort(held_normal),
        held_anomaly=np.sort(held_anomaly),
        n_hidden=n_hidden,
    )


def _part_of(share: float, n: int) -> int:
    """Return how many rows beside `n` others are that share of all."""
    return round(share / (1 - share) * n)
