"""Labels: 1 anomaly, 0 normal, -1 unlabelled, and how others write them.

The same numbers mean opposite things in neighbouring libraries, and a detector trained
with inverted labels fails without a word. So what looks like another convention is
refused unless it is declared, and `encode_labels` converts it.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloof.exceptions import LabelError, LabelWarning
from aloof.phrases import count

__all__ = [
    "ANOMALY",
    "NORMAL",
    "UNLABELLED",
    "Convention",
    "Labels",
    "encode_labels",
    "meanings",
    "normal_rows",
    "read_labels",
    "with_gaps",
]

ANOMALY, NORMAL, UNLABELLED = 1, 0, -1

Convention = Literal["aloof", "pyod", "deepod", "deepsad", "sklearn-outlier"]
Labels = Convention | Mapping[Any, int]

_CONVENTIONS: dict[str, dict[int, int]] = {
    "aloof": {1: ANOMALY, 0: NORMAL, -1: UNLABELLED},
    "pyod": {1: ANOMALY, 0: NORMAL},
    "deepod": {1: ANOMALY, 0: UNLABELLED},
    "deepsad": {-1: ANOMALY, 1: NORMAL, 0: UNLABELLED},
    "sklearn-outlier": {-1: ANOMALY, 1: NORMAL},
}
_HINT = (
    "aloof expects 1 for anomalies, 0 for normal rows and -1, NaN or None for unlabelled "
    "ones. Convert with aloof.encode_labels(y, convention), or let a detector do it: "
    "detector.set_params(labels=convention). The convention is one of "
    f"{', '.join(map(repr, _CONVENTIONS))} or a mapping such as {{'fraud': 1, 'ok': 0}}."
)


def meanings(convention: Labels) -> dict[Any, int]:
    """Return what each value of a convention means: 1, 0 or -1."""
    if isinstance(convention, Mapping):
        mapping = dict(convention)
        targets = set(mapping.values())
        if not targets <= {ANOMALY, NORMAL, UNLABELLED}:
            raise LabelError(f"A label mapping must map to 1, 0 or -1; got {_listed(targets)}.")
        return mapping
    if isinstance(convention, str) and convention in _CONVENTIONS:
        return dict(_CONVENTIONS[convention])
    raise LabelError(
        f"Unknown label convention {convention!r}. Choose from "
        f"{', '.join(map(repr, _CONVENTIONS))}, or pass a mapping."
    )


def encode_labels(y: ArrayLike, convention: Labels) -> NDArray[np.int64]:
    """Convert labels from another convention; unexpected values are an error.

    Parameters
    ----------
    y
        Labels. Missing values (NaN, None, pandas' NA) are unlabelled.
    convention
        The convention they follow, or a mapping from their values to 1, 0 and -1.

        ================== ======= ====== ==========
        convention         anomaly normal unlabelled
        ================== ======= ====== ==========
        "aloof"            1       0      -1
        "pyod"             1       0
        "deepod"           1              0
        "deepsad"          -1      1      0
        "sklearn-outlier"  -1      1
        ================== ======= ====== ==========

    Returns
    -------
    Array of 1, 0 and -1.

    Examples
    --------
    >>> encode_labels([1, 1, -1, 0], "deepsad")
    array([ 0,  0,  1, -1])
    >>> encode_labels(["ok", "fraud", None], {"fraud": 1, "ok": 0})
    array([ 0,  1, -1])
    """
    mapping = meanings(convention)
    values = [_scalar(value) for value in np.asarray(y, dtype=object).ravel()]
    unknown = {value for value in values if value is not None and value not in mapping}
    if unknown:
        raise LabelError(
            f"Labels {_listed(unknown)} are not part of the convention, which has "
            f"{_listed(set(mapping))}. Give each a meaning: 1 (anomaly), 0 (normal) or -1 "
            "(unlabelled)."
        )
    return np.array(
        [UNLABELLED if value is None else mapping[value] for value in values], np.int64
    )


def read_labels(
    y: ArrayLike | None,
    n_rows: int,
    convention: Labels = "aloof",
    *,
    training: bool = True,
) -> NDArray[np.int64]:
    """Read the labels given to ``fit``; warn or stop where they look wrong.

    Parameters
    ----------
    y
        1, 0 and -1 (or booleans), missing values for unlabelled rows; None: no labels.
    n_rows
        The number of labels there should be.
    convention
        Who wrote them; see `encode_labels`. Values that another convention than aloof's own
        does not know are an error.
    training
        Whether it takes normal rows to learn from; if not, any share of anomalies will do.

    Returns
    -------
    Array of 1, 0 and -1.

    Warns
    -----
    LabelWarning
        Values that are not labels (their rows count as unlabelled), and more anomalies than
        other rows.
    """
    mapping = meanings(convention)
    if y is None:
        return np.full(n_rows, UNLABELLED)
    numeric = np.asarray(y)
    if numeric.ndim == 2 and numeric.shape[1] == 1:
        numeric = numeric[:, 0]
    if numeric.ndim != 1:
        raise LabelError(f"y must be one column of labels; got shape {numeric.shape}.")
    if len(numeric) != n_rows:
        raise LabelError(
            f"y must have one label for each row: X has {n_rows} rows, y has {len(numeric)}."
        )
    if mapping != _CONVENTIONS["aloof"]:
        numeric = with_gaps(encode_labels(numeric, mapping))
    elif numeric.dtype.kind not in "biuf":
        numeric = _numeric(numeric)
    labels = np.full(n_rows, UNLABELLED)
    known = ~np.isnan(numeric.astype(np.float64))
    values = set(np.unique(numeric[known]).tolist())
    if values == {-1, 1}:
        raise LabelError(
            "y holds only -1 and 1, the convention of Deep SAD and of scikit-learn's outlier "
            "detectors (-1 anomaly, 1 normal). If you mean that, set "
            "labels='sklearn-outlier'. If -1 means unlabelled, use 0 or NaN for those rows. "
            f"{_HINT}"
        )
    unknown = {value for value in values if value not in (ANOMALY, NORMAL, UNLABELLED)}
    if unknown:
        warnings.warn(
            f"y holds {_listed(unknown)}; these rows count as unlabelled. {_HINT}",
            LabelWarning,
            stacklevel=4,
        )
    labels[numeric == NORMAL] = NORMAL
    labels[numeric == ANOMALY] = ANOMALY
    n_anomalies = int((labels == ANOMALY).sum()) if training else 0
    if n_anomalies == n_rows > 0:
        raise LabelError(
            "Every row is labelled as an anomaly, but fitting needs normal or unlabelled "
            f"rows to learn from. {_HINT}"
        )
    if 2 * n_anomalies > n_rows:
        warnings.warn(
            f"{n_anomalies} of {n_rows} rows are labelled as anomalies (1). If 1 means normal "
            f"in your data, the detector will learn the opposite of what you want. {_HINT}",
            LabelWarning,
            stacklevel=4,
        )
    return labels


def normal_rows(
    labels: NDArray[np.int64],
    *,
    things: str = "rows",
    better: int | None = None,
    error: type[Exception] = ValueError,
) -> NDArray[np.int64]:
    """Return which rows to learn from what is normal: all not labelled as anomalies.

    Parameters
    ----------
    labels
        1, 0 and -1.
    things
        What they are of, in the plural.
    better
        How many there should be; 2 is the least.
    error
        What to raise where there are fewer.
    """
    normal = np.flatnonzero(labels != ANOMALY)
    if len(normal) < 2:
        more = "" if better is None else f" (better {better:,})"
        raise error(
            f"Learning what is normal takes at least 2 {things} not labelled as "
            f"anomalies{more}; got {count(len(normal), things.removesuffix('s'))}. Add normal "
            f"or unlabelled {things}."
        )
    return normal


def _numeric(values: NDArray[Any]) -> NDArray[np.float64]:
    scalars = [_scalar(value) for value in values.tolist()]
    strings = {value for value in scalars if isinstance(value, str)}
    if strings:
        raise LabelError(f"y holds strings ({_listed(strings)}). {_HINT}")
    try:
        return np.array([np.nan if value is None else value for value in scalars], np.float64)
    except (TypeError, ValueError) as error:
        kinds = sorted({type(value).__name__ for value in scalars})
        raise LabelError(f"y holds values of type {', '.join(kinds)}. {_HINT}") from error


def _scalar(value: Any) -> Hashable:
    """Return None for every kind of missing value, a value of Python otherwise."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and np.isnan(value):
        return None
    return value  # type: ignore[no-any-return]


def _listed(values: set[Any]) -> str:
    shown = sorted(map(repr, values))
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    return ", ".join(shown[:8]) + more


def with_gaps(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return labels that were read as a user would give them: NaN means unlabelled.

    1 and -1 alone could be a mistake, and would be refused; 1 and NaN could not.
    """
    return np.where(labels == UNLABELLED, np.nan, labels)
