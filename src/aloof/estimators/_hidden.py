r"""How many anomalies hide among the rows without a label.

If a share :math:`\pi` of these rows are anomalies like the labelled ones, then at least
:math:`\pi` times as many of them are above any score as of the labelled ones. The largest share
for which that holds everywhere is an upper bound [1]_, and 0 as soon as one labelled anomaly
stands out from all other rows. Scores must come from members that saw neither.

References
----------
.. [1] Blanchard, Lee & Scott, "Semi-supervised novelty detection", JMLR 11 (2010).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["estimate_hidden"]

# Where so many rows look like labelled anomalies, labelled anomalies look like normal rows,
# and nothing can be told from it; fewer than the other are chance.
_MOST, _LEAST = 0.2, 0.003


def estimate_hidden(unlabelled: NDArray[np.float64], labelled: NDArray[np.float64]) -> float:
    """Return the share of rows without a label that are anomalies like the labelled ones.

    Parameters
    ----------
    unlabelled, labelled
        Anomaly scores.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> normal, labelled = rng.normal(size=950), rng.normal(size=20) + 8
    >>> hidden = rng.normal(size=50) + 8
    >>> round(estimate_hidden(np.r_[normal, hidden], labelled), 2)
    0.05
    >>> estimate_hidden(normal, labelled)
    0.0
    """
    n = len(labelled)
    levels = np.sort(labelled)[::-1]
    above = len(unlabelled) - np.searchsorted(np.sort(unlabelled), levels, side="left")
    share = float(np.min(above / len(unlabelled) * (n + 1) / np.arange(1, n + 1)))
    return share if _LEAST <= share <= _MOST else 0.0
