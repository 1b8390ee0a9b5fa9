"""What the columns of a row would hold if it were normal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aloof.estimators import Detector
from aloof.models.table.encoder import TableEncoder

__all__ = ["expected_rows"]

# A column stands out if it contributes this part of what the first one does. After three
# passes what is expected in its place has settled.
_STANDING_OUT, _PASSES = 0.2, 3


def expected_rows(
    detector: Detector,
    encoder: TableEncoder,
    encoded: NDArray[np.float32],
    contributions: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return what the members expect of rows when the columns that stand out are hidden.

    A reconstruction alone follows the value that was there. So columns that stand out are set
    to their means, then to what the members make of that.

    Parameters
    ----------
    detector, encoder
        Of the model.
    encoded, contributions
        The rows, and what each feature contributes to their scores, ``(n, n_features)``.
    """
    by_column = encoder.sum_by_column(contributions)
    hidden = by_column >= _STANDING_OUT * by_column.max(axis=1, keepdims=True)
    hidden_features = hidden[:, encoder.owners]
    expected = np.zeros(encoded.shape)
    for _ in range(_PASSES):
        expected = detector.reconstruct(np.where(hidden_features, expected, encoded))
    return expected
