"""How wrong members have each feature, and the score, from one pass through the networks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aloof.scoring.chunks import RowReader, read_parts
from aloof.scoring.scorer import Scorer
from aloof.vae import log_likelihood

__all__ = ["feature_errors"]


def feature_errors(
    scorer: Scorer, rows: RowReader, n_rows: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the members' mean absolute error in each feature, and the anomaly scores.

    Parameters
    ----------
    scorer
        Of members whose rows are vectors of numbers.
    rows, n_rows
        As in `Scorer.score`.

    Returns
    -------
    errors
        ``(n_rows, n_features)``.
    scores
        As `Scorer.score` has them, with the sign of anomaly scores.
    """
    width = read_parts(rows, slice(0, 1))[0].shape[1]
    errors, scores = np.empty((n_rows, width)), np.empty(n_rows)
    for chunk, (x, *context), mean, log_var in scorer.encoded(rows, n_rows):
        size = chunk.stop - chunk.start
        output = scorer.ensemble.decoder(mean, *context)
        expected = output[0] if isinstance(output, tuple) else output
        wrong = (x - expected).abs().mean(0)
        total = scorer.divergence(mean, log_var) - log_likelihood(scorer.objective, x, output)
        errors[chunk] = wrong[:size].cpu().double().numpy()
        scores[chunk] = total.mean(0)[:size].cpu().double().numpy()
    # As scores are: nothing is left of the order of summation.
    return (
        errors.astype(np.float32).astype(np.float64),
        scores.astype(np.float32).astype(np.float64),
    )
