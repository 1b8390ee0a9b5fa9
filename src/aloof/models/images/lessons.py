"""What labelled defects teach about patches: evidence that is added, and never a veto.

A *direction* is learned: the one that tells patches of labelled defects best from odd patches
of normal images (Fisher's discriminant). If somebody asks for it, also a *detector* that has
labelled patches as anomalies, such as DP-VAE. Of both, only what lies above the level of odd
patches of normal images counts, and everything else keeps the score that it has without labels.
Kinds of defects that nobody labelled gain by what they have in common with labelled ones. They
can lose in rank alone, where normal images gain more.

How much all this counts is decided by labelled images that are left out by turns: in so far as
the others help to recognise them. If they do not, labels count nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from aloof.estimators import Detector

__all__ = ["LabelledPatches", "Lessons", "learn_direction", "top_mean"]

_ODDEST = 16  # patches of a normal image that defects are told from
_EVERY = 64  # one of so many of its other patches, too
_ROUND = 1.0  # how far the spread of patches counts as the same in all directions
_WEIGHT = 0.5  # what labels count beside the rest, where all of them are recognised
_REACHED = 0.05  # share of the normal images that lie as far along the direction
_DETECTOR = 0.5  # what the scores of the detector count
_ENOUGH = 10  # labelled images that count in full where too few can be left out
_FEWEST = 3  # labelled images that can be left out by turns
_NUMBERS = ("share", "level", "unit", "detector_level", "detector_unit")
_PREFIX = "lessons."
_DIRECTION, _VALUES = f"{_PREFIX}direction", f"{_PREFIX}numbers"
_NESTED = f"{_PREFIX}detector."


@dataclass(frozen=True, eq=False)
class LabelledPatches:
    """The patches of one labelled image.

    Attributes
    ----------
    bad
        Vectors of those that make it an anomaly, of mirror images as well, ``(n, size)``.
    vectors
        Of all its patches.
    """

    bad: Tensor
    vectors: Tensor


@dataclass(frozen=True, eq=False)
class Lessons:
    """What labelled defects add to the scores of patches.

    Attributes
    ----------
    direction
        Along which defects lie, ``(size,)``.
    share
        How much all of this counts: 1 where every labelled image that was left out was
        recognised.
    level, unit
        Along the direction: where it begins to count, and how much more is worth 1.
    detector
        Learned from labelled patches; None: there is none.
    detector_level, detector_unit
        Of its scores.
    """

    direction: Tensor
    share: float
    level: float
    unit: float
    detector: Detector | None = None
    detector_level: float = 0.0
    detector_unit: float = 1.0

    def along(self, vectors: Tensor) -> Tensor:
        """Return how far patches, ``(n, size)``, lie along the direction."""
        return vectors @ self.direction

    def gained(self, along: Tensor, learned: Tensor | None) -> Tensor:
        """Return what patches gain; never less than 0.

        Parameters
        ----------
        along
            How far they lie along the direction.
        learned
            What the detector says of them; None: there is none.
        """
        gained = (along.double() - self.level).clamp_min(0) / self.unit
        if learned is not None:
            gained = gained + (learned - self.detector_level).clamp_min(0) / self.detector_unit
        return self.share * gained

    def measured(self, one: float) -> Lessons:
        """Return these lessons for scores that are so many times smaller."""
        return replace(self, unit=one * self.unit)

    def taught(self, detector: Detector, scores: NDArray[np.float64], n_top: int) -> Lessons:
        """Return these lessons with a detector that learned from labelled patches.

        Parameters
        ----------
        detector
            Fitted.
        scores
            What it says of patches of normal images, ``(n, n_patches)``.
        n_top
            How many patches make up the score of an image.
        """
        level = float(np.median(top_mean(scores, n_top)))
        height = max(level - float(np.median(scores)), 1e-6 * max(1.0, abs(level)))
        unit = height / _DETECTOR
        return replace(self, detector=detector, detector_level=level, detector_unit=unit)

    def state(self) -> dict[str, Any] | None:
        """Return what JSON can hold of the detector; None: there is none."""
        from aloof.estimators._saving import describe

        return None if self.detector is None else describe(self.detector)[0]

    def tensors(self) -> dict[str, Tensor]:
        """Return the rest."""
        from aloof.estimators._saving import describe

        numbers = torch.tensor([getattr(self, n) for n in _NUMBERS], dtype=torch.float64)
        own = {} if self.detector is None else describe(self.detector)[1]
        return {
            _DIRECTION: self.direction,
            _VALUES: numbers,
            **{f"{_NESTED}{name}": value for name, value in own.items()},
        }

    @classmethod
    def taken(
        cls, state: Mapping[str, Any] | None, tensors: dict[str, Tensor], size: int, device: str
    ) -> Lessons | None:
        """Take what was kept out of tensors; None: nothing was.

        A ValueError says what is wrong with it.

        Parameters
        ----------
        state
            Of the detector.
        tensors
            By name; lessons are taken out.
        size
            Of the vector of a patch.
        device
            Where the detector computes.
        """
        if _DIRECTION not in tensors and _VALUES not in tensors:
            return None
        own = [tensors.pop(name, torch.empty(0)) for name in (_DIRECTION, _VALUES)]
        for value in own:
            if not value.is_floating_point() or not bool(torch.isfinite(value).all()):
                raise ValueError("the tensors of labelled defects are not of numbers")
        direction, numbers = own[0].float(), own[1]
        if direction.shape != (size,) or numbers.shape != (len(_NUMBERS),):
            raise ValueError("the tensors of labelled defects are of another shape")
        found = cls(direction, **dict(zip(_NUMBERS, numbers.tolist(), strict=True)))
        if found.unit <= 0 or found.detector_unit <= 0 or not 0 < found.share <= 1:
            raise ValueError("the tensors of labelled defects are out of range")
        if state is None:
            return found
        return replace(found, detector=_restored(state, tensors, size, device))


def learn_direction(
    labelled: Sequence[LabelledPatches],
    vectors: Iterable[Tensor],
    odd: NDArray[np.float64],
    n_top: int,
) -> Lessons | None:
    """Learn what sets patches of labelled defects apart; None: they teach nothing.

    Parameters
    ----------
    labelled
        The labelled images.
    vectors
        Of the patches of normal images, some images at a time, ``(k, n_patches, size)``.
    odd
        How odd these patches are for a memory without the image itself, ``(n, n_patches)``.
    n_top
        How many patches make up the score of an image.
    """
    if not labelled:
        return None
    normal = _Normal(vectors, odd, n_top)
    direction = normal.against([image.bad for image in labelled])
    level, unit = normal.usual(direction)
    share = _share(labelled, normal, n_top)
    if share <= 0 or unit <= 0:
        return None
    return Lessons(direction, share, level, unit / _WEIGHT)


class _Normal:
    """Patches of normal images: half of the images to tell defects from, half to compare with.

    Parameters
    ----------
    vectors, odd, n_top
        As in `learn_direction`.
    """

    def __init__(self, vectors: Iterable[Tensor], odd: NDArray[np.float64], n_top: int) -> None:
        told, compared, places, start = [], [], [], 0
        few = len(odd) < 2
        for part in vectors:
            for image in part:
                worst = torch.from_numpy(np.argsort(-odd[start], kind="stable")[:_ODDEST])
                if start % 2 == 0 or few:
                    told += [image[worst], image[::_EVERY]]
                if start % 2 or few:
                    compared.append(image)
                    places.append(worst)
                start += 1
        rows = torch.cat(told).double()
        self._mean = rows.mean(0)
        apart = rows - self._mean
        spread = apart.T @ apart / len(rows)
        mean_spread = spread.diagonal().mean().clamp_min(1e-12)
        self._spread = spread + _ROUND * mean_spread * torch.eye(len(spread)).to(spread)
        self._compared, self._odd = torch.stack(compared), torch.stack(places)
        self._n_top = n_top

    def against(self, bad: Sequence[Tensor]) -> Tensor:
        """Return the direction that patches of defects lie in."""
        away = torch.cat(list(bad)).double().mean(0) - self._mean
        found: Tensor = torch.linalg.solve(self._spread, away)
        return (found / found.square().sum().sqrt().clamp_min(1e-12)).float()

    def usual(self, direction: Tensor) -> tuple[float, float]:
        """Return how far an odd patch lies along it, and how much the tops of images differ."""
        along = self._compared @ direction
        odd = along.gather(1, self._odd)
        return float(odd.median()), float(self._tops(along).std(correction=0))

    def reached(self, direction: Tensor) -> float:
        """Return how far along it the top of an image lies that few others reach."""
        return float(torch.quantile(self._tops(self._compared @ direction), 1 - _REACHED))

    def _tops(self, along: Tensor) -> Tensor:
        return along.topk(self._n_top, 1).values.mean(1)


def top_mean(maps: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the mean of the n highest scores of each map."""
    flat = maps.reshape(len(maps), -1)
    highest: NDArray[np.float64] = np.partition(flat, -n, axis=1)[:, -n:].mean(1)
    return highest


def _share(labelled: Sequence[LabelledPatches], normal: _Normal, n_top: int) -> float:
    """Return how much labels count, by labelled images that are left out by turns."""
    if len(labelled) < _FEWEST:
        return len(labelled) / _ENOUGH
    reached = []
    for place, image in enumerate(labelled):
        others = [*labelled[:place], *labelled[place + 1 :]]
        direction = normal.against([each.bad for each in others])
        top = (image.vectors @ direction).topk(n_top).values.mean()
        reached.append(float(top) > normal.reached(direction))
    # Normal images reach as far, too: a few by definition.
    return max(0.0, (float(np.mean(reached)) - _REACHED) / (1 - _REACHED))


def _restored(
    state: Mapping[str, Any], tensors: dict[str, Tensor], size: int, device: str
) -> Detector:
    from aloof.estimators import DETECTORS
    from aloof.estimators._saving import restored

    method = state.get("method")
    if method not in DETECTORS:
        raise ValueError(f"there is no method {method!r}")
    own = {
        name.removeprefix(_NESTED): tensors.pop(name)
        for name in list(tensors)
        if name.startswith(_NESTED)
    }
    detector = restored(DETECTORS[method], "the model", (dict(state), own), None, None, device)
    if detector.shape_ != (size + 2,):
        raise ValueError("the detector of labelled defects is not for these patches")
    return detector
