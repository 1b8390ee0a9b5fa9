"""Three protocols: what training knows of anomalies, and which of them the test has.

known
    Labelled anomalies of all kinds, as in `aloof.bench.splits.make_split`: 60:40, nothing else
    among the normal rows.
novel
    The same rows, but all labelled anomalies are of one kind, and the test has only anomalies
    of the other kinds: what nobody has labelled.
hidden
    As *known*, with anomalies among the rows taken as normal. No method is told.

A split is a function of the labels, the kinds, the seed and the numbers of a condition. With
one seed, the normal rows to train and to test on are the same in all three protocols, the test
of *hidden* is that of *known*, and that of *novel* is it without one kind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from aloof.bench.splits import Split, count_rows, divide, make_split
from aloof.labels import ANOMALY, NORMAL

__all__ = [
    "FEWEST",
    "PROTOCOLS",
    "Condition",
    "Protocol",
    "cluster_kinds",
    "labelled_kind",
    "make_protocol_split",
]

Protocol = Literal["known", "novel", "hidden"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)

FEWEST = 5
"""Training rows of the labelled kind, and test rows of others, that *novel* needs."""


@dataclass(frozen=True, order=True)
class Condition:
    """What a table of results is about.

    Attributes
    ----------
    protocol
        Its name.
    labels
        Labelled anomalies: below 1 a share of these and the normal training rows, from 1 on
        their number.
    hidden
        Hidden anomalies, as a share of the rows taken as normal; 0 but for *hidden*.

    Examples
    --------
    >>> print(Condition("known", 0.01))
    known, 1 % labelled
    >>> print(Condition("hidden", 5, 0.1))
    hidden 10 %, 5 labels
    """

    protocol: str
    labels: float
    hidden: float = 0.0

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}.")
        if not 0 <= self.labels or (self.labels >= 1 and self.labels % 1):
            raise ValueError(
                "labels must be a share below 1 or a whole number of labelled anomalies; got "
                f"{self.labels!r}."
            )
        if not 0 <= self.hidden < 1 or (self.hidden > 0) != (self.protocol == "hidden"):
            raise ValueError(
                "hidden must be a share between 0 and 1 with the protocol hidden, and 0 with "
                f"the others; got {self.hidden!r} with {self.protocol}."
            )

    def __str__(self) -> str:
        hidden = f" {100 * self.hidden:g} %" if self.hidden else ""
        return f"{self.protocol}{hidden}, {self.amount}"

    @property
    def amount(self) -> str:
        """How many labels there are, in words."""
        if self.labels < 1:
            return f"{100 * self.labels:g} % labelled"
        return f"{self.labels:g} label" + ("s" if self.labels > 1 else "")


def make_protocol_split(
    y: ArrayLike,
    condition: Condition,
    *,
    seed: int,
    kinds: ArrayLike | None = None,
    test_size: float = 0.4,
) -> Split:
    """Divide a table into training and test rows, as a protocol wants it.

    Parameters
    ----------
    y
        The true labels: 1 anomaly, 0 normal.
    condition
        The protocol and its numbers.
    seed
        A number from 0; nothing else is random. With *novel* it also says which kind is
        labelled: kinds take turns in the order of their names. One with fewer training rows
        than labels asked for, or than `FEWEST`, passes, and so does one that leaves fewer than
        `FEWEST` anomalies to test on.
    kinds
        Of each row, for *novel*; those of normal rows do not matter.
    test_size
        Share of the normal rows, and of the anomalies, that are tested on.

    Returns
    -------
    The row numbers. `gamma_l` is the share of labelled anomalies also where their number was
    asked for.

    Raises
    ------
    ValueError
        Says what the table lacks.

    Examples
    --------
    >>> y = [0] * 100 + [1] * 40
    >>> kinds = ["-"] * 100 + ["leak", "noise"] * 20
    >>> split = make_protocol_split(y, Condition("novel", 5), seed=0, kinds=kinds)
    >>> len(split.train_anomaly), {kinds[row] for row in split.train_anomaly}
    (5, {'leak'})
    >>> sorted({kinds[row] for row in split.test})
    ['-', 'noise']
    """
    labels = np.asarray(y)
    # Without labelled and hidden anomalies: the division, and checks of what was passed.
    plain = make_split(labels, seed=seed, gamma_l=0.0, test_size=test_size)
    anomalies, _ = divide(labels, ANOMALY, seed, test_size)
    gamma_l = _share(condition, len(plain.train_unlabelled), len(anomalies))
    if condition.protocol == "novel":
        return _novel(labels, kinds, condition, plain, anomalies, gamma_l)
    return make_split(
        labels, seed=seed, gamma_l=gamma_l, gamma_p=condition.hidden, test_size=test_size
    )


def labelled_kind(split: Split, kinds: ArrayLike) -> str:
    """Return the kind of the labelled anomalies of a *novel* split."""
    (kind,) = np.unique(np.asarray(kinds)[split.train_anomaly])
    return str(kind)


def cluster_kinds(
    X: ArrayLike, y: ArrayLike, *, n_kinds: int = 3, seed: int = 0
) -> NDArray[np.str_]:
    """Give anomalies kinds where nobody knows them: clusters by k-means.

    Parameters
    ----------
    X
        Rows ``(n, n_features)``. The anomalies are standardised by their own mean and
        variance.
    y
        The true labels.
    n_kinds
        Clusters; fewer where anomalies are equal to each other.
    seed
        Of k-means.

    Returns
    -------
    ``cluster 1`` for the largest and so on; empty for normal rows.
    """
    anomalies = np.flatnonzero(np.asarray(y) == ANOMALY)
    rows = StandardScaler().fit_transform(np.asarray(X, np.float64)[anomalies])
    n_clusters = min(n_kinds, len(np.unique(rows, axis=0)))
    found = KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(rows)
    sizes = np.bincount(found, minlength=n_clusters)
    place = np.empty(n_clusters, np.int64)
    place[np.argsort(-sizes, kind="stable")] = np.arange(1, n_clusters + 1)
    kinds = np.full(len(np.asarray(y)), "", dtype=f"<U{len('cluster ') + len(str(n_kinds))}")
    kinds[anomalies] = [f"cluster {number}" for number in place[found]]
    return kinds


def _share(condition: Condition, n_normal: int, n_anomalies: int) -> float:
    """Return labelled anomalies as `make_split` takes them."""
    if condition.labels < 1:
        return condition.labels
    if condition.labels > n_anomalies:
        raise ValueError(
            f"{condition.amount} are asked for, but the training rows have {n_anomalies} "
            "anomalies."
        )
    return condition.labels / (n_normal + condition.labels)


def _novel(
    labels: NDArray[np.int64],
    kinds: ArrayLike | None,
    condition: Condition,
    plain: Split,
    anomalies: NDArray[np.int64],
    gamma_l: float,
) -> Split:
    """Return the split with labels of one kind and a test without it."""
    own = None if kinds is None else np.asarray(kinds).astype(np.str_)
    if own is None or own.shape != labels.shape:
        raise ValueError("The protocol novel needs a kind for each row.")
    if gamma_l == 0:
        raise ValueError("The protocol novel needs labelled anomalies.")
    names = np.unique(own[labels == ANOMALY])
    if len(names) < 2:
        raise ValueError("All anomalies are of one kind: no other kind is left to test on.")
    n_labelled = count_rows(len(plain.train_unlabelled), gamma_l)
    sizes = {name: int((own[anomalies] == name).sum()) for name in names}
    turns = [str(names[(plain.seed + turn) % len(names)]) for turn in range(len(names))]
    needed = max(FEWEST, n_labelled)
    tested = own[plain.test][labels[plain.test] == ANOMALY]
    for kind in turns:
        if sizes[kind] >= needed and (tested != kind).sum() >= FEWEST:
            break
    else:
        left = max(
            int((tested != kind).sum()) for kind in names if sizes[kind] == max(sizes.values())
        )
        raise ValueError(
            f"For {condition.amount}, a kind must have {needed} training rows and leave "
            f"{FEWEST} anomalies of other kinds to test on; the largest has "
            f"{max(sizes.values())} and leaves {left}."
        )
    of_kind = anomalies[own[anomalies] == kind]
    test = plain.test[(labels[plain.test] == NORMAL) | (own[plain.test] != kind)]
    return replace(
        plain,
        train_anomaly=np.sort(of_kind[:n_labelled]),
        test=test,
        gamma_l=gamma_l,
    )
