"""Shallow baselines on images: on raw pixels, and on the codes of an autoencoder."""

from __future__ import annotations

from math import prod
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from aloof.baselines.contract import Baseline
from aloof.baselines.images.results import FittedImages
from aloof.baselines.registry import BASELINES
from aloof.labels import ANOMALY, NORMAL

__all__ = ["SHALLOW_METHODS", "ShallowMethod", "hybrid_scores", "raw_scores"]

ShallowMethod = Literal["oc-svm", "iforest", "kde", "ssad"]
SHALLOW_METHODS: tuple[ShallowMethod, ...] = get_args(ShallowMethod)

_Pixels = NDArray[Any]


def raw_scores(
    method: ShallowMethod,
    normal: _Pixels,
    anomaly: _Pixels,
    test: _Pixels,
    *,
    seed: int,
    max_rows: int = 2000,
    **parameters: Any,
) -> NDArray[np.float64]:
    """Fit a shallow method to flattened pixels in [0, 1]; score test images.

    Parameters
    ----------
    method
        ``"ssad"`` uses labelled anomalies, the others leave them out.
    normal, anomaly, test
        Images ``(n, c, h, w)``, bytes or numbers in [0, 1].
    seed
        Of the method, and of the rows that are drawn.
    max_rows
        Most normal rows to learn from; of more, so many are drawn. The cost of all but the
        isolation forest, which draws by itself, grows with their square. Labelled anomalies
        are all kept.
    parameters
        Of the method's class.

    Returns
    -------
    Scores ``(n,)``; higher is worse.
    """
    rows = normal if method == "iforest" else _drawn(normal, max_rows, seed)
    detector = _fitted(method, _flat(rows), _flat(anomaly), seed, parameters)
    return detector.anomaly_score(_flat(test))


def hybrid_scores(
    method: ShallowMethod,
    autoencoder: FittedImages,
    normal: _Pixels,
    anomaly: _Pixels,
    test: _Pixels,
    *,
    seed: int,
    max_rows: int = 2000,
    **parameters: Any,
) -> NDArray[np.float64]:
    """Fit a shallow method to the standardised codes of each member; score test images.

    Parameters
    ----------
    method, normal, anomaly, test, seed, max_rows, parameters
        As in `raw_scores`.
    autoencoder
        A fitted ``"cae"``, trained on the normal images.

    Returns
    -------
    Scores ``(members, n)``; higher is worse.
    """
    rows = normal if method == "iforest" else _drawn(normal, max_rows, seed)
    codes = autoencoder.encode(np.concatenate([rows, anomaly, test]))
    ends = np.cumsum([len(rows), len(anomaly)])
    scores = []
    for own in codes:
        scaled = StandardScaler().fit(own[: len(rows)]).transform(own)
        usual, labelled, asked = np.split(scaled, ends)
        detector = _fitted(method, usual, labelled, seed, parameters)
        scores.append(detector.anomaly_score(asked))
    return np.stack(scores)


def _fitted(
    method: ShallowMethod,
    normal: NDArray[np.float64],
    anomaly: NDArray[np.float64],
    seed: int,
    parameters: dict[str, Any],
) -> Baseline:
    if method not in SHALLOW_METHODS:
        raise ValueError(f"method must be one of {', '.join(SHALLOW_METHODS)}; got {method!r}.")
    labels = np.repeat([NORMAL, ANOMALY], [len(normal), len(anomaly)])
    detector = BASELINES[method](random_state=seed, **parameters)
    return detector.fit(np.concatenate([normal, anomaly]), labels)


def _drawn(images: _Pixels, max_rows: int, seed: int) -> _Pixels:
    if len(images) <= max_rows:
        return images
    rows = np.random.default_rng(seed).choice(len(images), max_rows, replace=False)
    return images[np.sort(rows)]


def _flat(images: _Pixels) -> NDArray[np.float64]:
    flat = images.reshape(len(images), prod(images.shape[1:])).astype(np.float64)
    return flat / 255 if images.dtype == np.uint8 else flat
