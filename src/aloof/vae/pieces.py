"""Training shared out: problems and members in pieces that learn apart, and join again.

A member's result does not depend on what it is stacked with, so any worker may train any of
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from aloof.vae.config import TrainingConfig
from aloof.vae.fitting import FitResult
from aloof.vae.problem import VAEProblem
from aloof.vae.warmup import share_warmups

__all__ = ["Piece", "joined_pieces", "pieces_of"]


@dataclass(frozen=True)
class Piece:
    """What one worker trains.

    Attributes
    ----------
    problems
        Problems, each with some of its members.
    of
        The number that each of them has among all problems.
    """

    problems: Sequence[VAEProblem]
    of: Sequence[int]


def pieces_of(problems: Sequence[VAEProblem], config: TrainingConfig, n: int) -> list[Piece]:
    """Share problems and members out into at most `n` pieces of about the same work.

    Problems that share a warm-up stay together, member by member, so that none is trained
    twice.
    """
    alike: dict[tuple[str, int], list[int]] = {}
    for number, warmup in enumerate(share_warmups(problems, config).of):
        key = ("alone", number) if warmup is None else ("shared", warmup)
        alike.setdefault(key, []).append(number)
    units = [
        (numbers, member)
        for numbers in alike.values()
        for member in range(len(problems[numbers[0]].seeds))
    ]
    work = np.array([sum(len(problems[k].normal) for k in numbers) for numbers, _ in units])
    middle = np.cumsum(work) - work / 2
    place = (middle * n / work.sum()).astype(np.int64)
    pieces = []
    for own in np.unique(place):
        members: dict[int, list[int]] = {}
        for unit in np.flatnonzero(place == own):
            numbers, member = units[unit]
            for number in numbers:
                members.setdefault(number, []).append(member)
        some = [
            replace(problems[number], seeds=[problems[number].seeds[k] for k in kept])
            for number, kept in members.items()
        ]
        pieces.append(Piece(some, list(members)))
    return pieces


def joined_pieces(
    pieces: Sequence[Piece], results: Sequence[Sequence[FitResult]], n_problems: int
) -> list[FitResult]:
    """Return one result for each problem from those of its pieces, in their order."""
    found: list[list[FitResult]] = [[] for _ in range(n_problems)]
    for piece, own in zip(pieces, results, strict=True):
        for number, result in zip(piece.of, own, strict=True):
            found[number].append(result)
    return [_joined(parts) for parts in found]


def _joined(parts: Sequence[FitResult]) -> FitResult:
    if len(parts) == 1:
        return parts[0]
    warmups = [part.warmup for part in parts if part.warmup is not None]
    return replace(
        FitResult.joined(parts), warmup=FitResult.joined(warmups) if warmups else None
    )
