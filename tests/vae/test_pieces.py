"""What is trained in pieces is what is trained at once, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from problems import CPU, OBJECTIVES, architecture, config, data, problem, states

from aloof.vae import VAEProblem, count_epochs, train
from aloof.vae.pieces import joined_pieces, pieces_of


def compared() -> list[VAEProblem]:
    """Two that share a warm-up, one alone with more members."""
    return [
        problem([1, 2], objective=OBJECTIVES["dp"]),
        problem([1, 2], objective=OBJECTIVES["mml"]),
        problem([3, 4, 5], objective=OBJECTIVES["vae"]),
    ]


@pytest.mark.parametrize("n", [1, 2, 3, 20])
def test_pieces_give_the_same_results(n: int) -> None:
    problems, schedule = compared(), config()
    pieces = pieces_of(problems, schedule, n)
    assert len(pieces) == min(n, 5)  # two members that share, three that do not
    members = [
        (number, seed)
        for piece in pieces
        for number, part in zip(piece.of, piece.problems, strict=True)
        for seed in part.seeds
    ]
    assert sorted(members) == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 3), (2, 4), (2, 5)]
    for piece in pieces:  # who shared a warm-up still does
        assert (0 in piece.of) == (1 in piece.of)
        assert count_epochs(piece.problems, schedule) <= count_epochs(problems, schedule)
    x = data()
    apart = [
        train([x], piece.problems, architecture(), schedule, device=CPU) for piece in pieces
    ]
    found = joined_pieces(pieces, apart, len(problems))
    together = train([x], problems, architecture(), schedule, device=CPU)
    for own, other in zip(found, together, strict=True):
        np.testing.assert_allclose(own.history["loss"], other.history["loss"], rtol=1e-9)
        assert (own.warmup is None) == (other.warmup is None)
        torch.testing.assert_close(
            states(own.ensemble), states(other.ensemble), rtol=1e-7, atol=1e-10
        )
