"""How wrong members have each feature, and the score, from one pass through the networks."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from aloof.scoring.chunks import RowReader, read_one, read_parts
from aloof.scoring.scorer import Scorer, mean_score
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
    if scorer.perceptrons is None:
        errors, members = _wide_errors(scorer, rows, n_rows)
    else:
        errors, members = scorer.perceptrons.feature_errors(rows, n_rows)
        far = ~np.isfinite(members.sum(0) + errors.sum(1))  # too far away for float32
        for row in np.flatnonzero(far):
            alone = _wide_errors(scorer, partial(read_one, rows, int(row)), 1)
            errors[row] = alone[0][0]
            if not np.isfinite(members[:, row]).all():
                members[:, row] = alone[1][:, 0]
    # As scores are: nothing is left of the order of summation.
    return errors.astype(np.float32).astype(np.float64), -mean_score(members)


def _wide_errors(
    scorer: Scorer, rows: RowReader, n_rows: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the same errors, and each member's scores, by networks of any kind."""
    width = read_parts(rows, slice(0, 1))[0].shape[1]
    errors, scores = np.empty((n_rows, width)), np.empty((scorer.ensemble.n_members, n_rows))
    for chunk, (x, *context), mean, log_var in scorer.encoded(rows, n_rows):
        size = chunk.stop - chunk.start
        output = scorer.ensemble.decoder(mean, *context)
        expected = output[0] if isinstance(output, tuple) else output
        wrong = (x - expected).abs().mean(0)
        total = scorer.divergence(mean, log_var) - log_likelihood(scorer.objective, x, output)
        errors[chunk] = wrong[:size].cpu().double().numpy()
        scores[:, chunk] = -total[:, :size].cpu().double().numpy()
    return errors, scores
