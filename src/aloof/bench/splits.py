r"""The protocol for tables: which rows are trained on, which are labelled, which test.

Normal rows and anomalies are each divided 60:40 at random. Every normal training row is used.
Of the anomalous training rows, `n_labelled` are used with their label and `n_hidden` are
mixed unnoticed with the normal rows; the others are left out. With :math:`N` normal training
rows,

.. math::

    \gamma_l = \frac{n_{labelled}}{N + n_{labelled}}, \qquad
    \gamma_p = \frac{n_{hidden}}{N + n_{hidden}}

A split is a function of the labels and these numbers alone, so every system sees the same
rows. With one seed, the test rows do not depend on :math:`\gamma_l` and :math:`\gamma_p`, and a
larger value only adds rows to those of a smaller one.

References
----------
Daniel, Kurutach, Tamar: Deep Variational Semi-Supervised Novelty Detection.
Ruff et al.: Deep Semi-Supervised Anomaly Detection, ICLR 2020.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from aloof.exceptions import LabelError
from aloof.labels import ANOMALY, NORMAL

__all__ = [
    "SCALINGS",
    "Scaling",
    "Split",
    "count_rows",
    "divide",
    "make_split",
    "read_split",
    "scale",
    "split_record",
    "standardise",
    "training_rows",
]

Scaling = Literal["standard", "unit"]
"""How columns are scaled: to mean 0 and variance 1, or from there to [0, 1]."""

SCALINGS: tuple[Scaling, ...] = get_args(Scaling)

_ROWS = ("train_unlabelled", "train_anomaly", "hidden", "test")


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Who sees which rows; row numbers in ascending order.

    Attributes
    ----------
    train_unlabelled
        Rows that training takes as normal: every normal training row, and `hidden`.
    train_anomaly
        Anomalies that training knows as such.
    hidden
        Anomalies among `train_unlabelled`. Training does not know which they are.
    test
        Rows to test on, with both labels.
    n_rows
        Of the whole data set.
    seed, gamma_l, gamma_p, test_size
        What the split was made from.
    """

    train_unlabelled: NDArray[np.int64]
    train_anomaly: NDArray[np.int64]
    hidden: NDArray[np.int64]
    test: NDArray[np.int64]
    n_rows: int
    seed: int
    gamma_l: float
    gamma_p: float
    test_size: float

    @cached_property
    def sha256(self) -> str:
        """A digest of the rows: two systems with one digest saw the same rows."""
        rows = {name: getattr(self, name).tolist() for name in _ROWS}
        return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()

    def __post_init__(self) -> None:
        for name in _ROWS:
            getattr(self, name).setflags(write=False)

    @property
    def train(self) -> NDArray[np.int64]:
        """Every row that is trained on, unlabelled rows first."""
        return np.concatenate([self.train_unlabelled, self.train_anomaly])


def make_split(
    y: ArrayLike,
    *,
    seed: int,
    gamma_l: float,
    gamma_p: float = 0.0,
    test_size: float = 0.4,
) -> Split:
    """Divide a data set into training and test rows, and choose the known anomalies.

    Parameters
    ----------
    y
        The true labels: 1 anomaly, 0 normal.
    seed
        A number from 0; nothing else is random.
    gamma_l
        Labelled anomalies, as a share of these and the normal training rows. Rounded to
        whole rows, but at least one if the share is not 0.
    gamma_p
        Pollution: hidden anomalies, as a share of the unlabelled training rows. Rounded in
        the same way.
    test_size
        Share of the normal rows, and of the anomalies, that are tested on.

    Returns
    -------
    The row numbers.

    Raises
    ------
    ValueError
        More anomalies asked for than the training rows have.

    Examples
    --------
    >>> y = [0] * 100 + [1] * 20
    >>> split = make_split(y, seed=0, gamma_l=0.05)
    >>> len(split.train_unlabelled), len(split.train_anomaly), len(split.test)
    (60, 3, 48)
    """
    labels = _true_labels(y)
    _check_arguments(seed, gamma_l, gamma_p, test_size)
    normal, test_normal = divide(labels, NORMAL, seed, test_size)
    anomalies, test_anomalies = divide(labels, ANOMALY, seed, test_size)
    n_labelled, n_hidden = _counts(len(normal), len(anomalies), gamma_l, gamma_p)
    # From opposite ends, so that neither choice depends on the size of the other.
    labelled = anomalies[:n_labelled]
    hidden = anomalies[len(anomalies) - n_hidden :]
    return Split(
        train_unlabelled=np.sort(np.concatenate([normal, hidden])),
        train_anomaly=np.sort(labelled),
        hidden=np.sort(hidden),
        test=np.sort(np.concatenate([test_normal, test_anomalies])),
        n_rows=len(labels),
        seed=int(seed),
        gamma_l=float(gamma_l),
        gamma_p=float(gamma_p),
        test_size=float(test_size),
    )


def training_rows(
    split: Split, X: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.int64]]:
    """Return the rows to train on and the labels that training may know.

    Parameters
    ----------
    split
        Of this data set.
    X
        Every row of the data set ``(n_rows, ...)``.

    Returns
    -------
    X_train
        The unlabelled rows, then the labelled anomalies.
    y_train
        0 and 1. Unlabelled rows have 0, hidden anomalies too: training takes them as normal.
    """
    if len(X) != split.n_rows:
        raise ValueError(f"The split is for {split.n_rows} rows, but X has {len(X)}.")
    labels = np.repeat(
        np.array([NORMAL, ANOMALY], np.int64),
        [len(split.train_unlabelled), len(split.train_anomaly)],
    )
    return X[split.train], labels


def standardise(
    X_train: ArrayLike, X_test: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both with the mean and variance of the training rows taken out, in float64.

    Columns that are constant in training are only shifted.
    """
    train = np.asarray(X_train, np.float64)
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(np.asarray(X_test, np.float64))


def scale(
    X_train: ArrayLike, X_test: ArrayLike, scaling: Scaling
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both scaled by the training rows, in float64.

    Columns that are constant in training are only shifted, whatever the scaling: test rows may
    be far from them. With ``"unit"``, test rows may be outside of [0, 1].

    Parameters
    ----------
    X_train, X_test
        Rows ``(n, d)``.
    scaling
        How.

    Examples
    --------
    >>> train, test = scale([[0, 7], [2, 7], [4, 7]], [[5, 9]], "unit")
    >>> train.tolist(), test.tolist()
    ([[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]], [[1.25, 2.0]])
    """
    train, test = standardise(X_train, X_test)
    if scaling == "standard":
        return train, test
    scaler = MinMaxScaler().fit(train)
    return scaler.transform(train), scaler.transform(test)


def split_record(split: Split) -> dict[str, Any]:
    """Return the split as what JSON can hold, row by row, with its digest.

    The record is exact: `read_split` gives the split back without the data.
    """
    record = {field.name: getattr(split, field.name) for field in fields(split)}
    rows = {name: record[name].tolist() for name in _ROWS}
    return {**record, **rows, "sha256": split.sha256}


def read_split(record: Mapping[str, Any]) -> Split:
    """Read a split back from its record.

    Raises
    ------
    ValueError
        A record that is not of a split, or whose rows were changed.
    """
    names = {field.name for field in fields(Split)}
    if set(record) != names | {"sha256"}:
        raise ValueError(
            f"The record of a split has the keys {', '.join(sorted(names))} and sha256; got "
            f"{', '.join(sorted(map(str, record)))}."
        )
    known = {name: record[name] for name in names}
    rows = {name: np.array(record[name], np.int64) for name in _ROWS}
    split = Split(**{**known, **rows})
    if split.sha256 != record["sha256"]:
        raise ValueError("The rows of this split were changed after it was recorded.")
    return split


def _true_labels(y: ArrayLike) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.ndim != 1 or not np.isin(labels, (NORMAL, ANOMALY)).all():
        raise LabelError(
            "A split needs the true label of each row, 0 (normal) or 1 (anomaly); y holds "
            "something else."
        )
    for label, kind in ((NORMAL, "normal rows"), (ANOMALY, "anomalies")):
        n = int((labels == label).sum())
        if n < 2:
            raise LabelError(
                f"y has {n} {kind}; a split needs at least 2, one to train and one to test."
            )
    return labels


def _check_arguments(seed: int, gamma_l: float, gamma_p: float, test_size: float) -> None:
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"seed must be an int >= 0; got {seed!r}.")
    for name, gamma in (("gamma_l", gamma_l), ("gamma_p", gamma_p)):
        if not 0 <= gamma < 1:
            raise ValueError(f"{name} must be a share, from 0 to below 1; got {gamma!r}.")
    if not 0 < test_size < 1:
        raise ValueError(f"test_size must be a share between 0 and 1; got {test_size!r}.")


def divide(
    labels: NDArray[Any], label: int, seed: int, test_size: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the training and the test rows of one label, both in random order."""
    rows = np.flatnonzero(labels == label)
    # The raw stream is what NumPy promises to keep; `permutation` may change with versions.
    stream = np.random.PCG64(np.random.SeedSequence(int(seed), spawn_key=(label,)))
    shuffled = rows[np.argsort(stream.random_raw(len(rows)), kind="stable")]
    n_test = min(max(round(test_size * len(rows)), 1), len(rows) - 1)
    return shuffled[n_test:], shuffled[:n_test]


def _counts(n_normal: int, n_anomalies: int, gamma_l: float, gamma_p: float) -> tuple[int, int]:
    """Return how many anomalies are labelled and how many hidden."""
    n_labelled, n_hidden = count_rows(n_normal, gamma_l), count_rows(n_normal, gamma_p)
    if n_labelled > n_anomalies:
        raise ValueError(
            f"gamma_l = {gamma_l:g} asks for {n_labelled} labelled anomalies beside "
            f"{n_normal} normal training rows, but the training rows have only {n_anomalies} "
            f"anomalies: gamma_l can be at most {_largest(n_normal, n_anomalies)}."
        )
    left = n_anomalies - n_labelled
    if n_hidden > left:
        raise ValueError(
            f"gamma_p = {gamma_p:g} asks for {n_hidden} hidden anomalies beside {n_normal} "
            f"normal training rows, but of the {n_anomalies} anomalies of the training rows "
            f"{n_labelled} are labelled (gamma_l = {gamma_l:g}) and {left} are left: gamma_p "
            f"can be at most {_largest(n_normal, left)}."
        )
    return n_labelled, n_hidden


def count_rows(n_normal: int, gamma: float) -> int:
    """Return how many anomalies a share asks for, beside so many normal rows."""
    return max(1, round(n_normal * gamma / (1 - gamma))) if gamma > 0 else 0


def _largest(n_normal: int, n_anomalies: int) -> str:
    """Return the share of `n_anomalies`, rounded down so that it can be asked for."""
    if n_anomalies == 0:
        return "0"
    share = n_anomalies / (n_normal + n_anomalies)
    scale = 10.0 ** (2 - math.floor(math.log10(share)))
    return f"{math.floor(share * scale) / scale:.3g}"
