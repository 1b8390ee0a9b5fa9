"""What labelled defects teach about patches: evidence that is added, and never a veto.

A *contrast* is learned: the distance of a patch to the memory of normal patches over its
distance to patches of labelled defects. If somebody asks for it, also a *detector* that has
labelled patches as anomalies, such as DP-VAE. Of both, only what lies above the level of normal
images counts. Everything else keeps the score that it has without labels, so kinds of defects
that nobody labelled are found as well as before.

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

from aloof.vision.memory import BLOCK, coreset, distances

if TYPE_CHECKING:
    from aloof.estimators import Detector

__all__ = ["LabelledPatches", "Lessons", "learn_contrast", "top_mean"]

_MOST = 500  # patches of defects that are kept
_SOFT = 0.05  # of the usual distance of a normal patch: nearer to a defect is no nearer
_REACHED = 0.05  # share of the normal images whose contrast reaches the level
_DETECTOR = 0.5  # what the scores of the detector count beside the contrast
_ENOUGH = 10  # labelled images that count in full where too few can be left out
_FEWEST = 3  # labelled images that can be left out by turns
_NUMBERS = ("share", "soft", "level", "unit", "detector_level", "detector_unit")
_PREFIX = "lessons."
_DEFECTS, _VALUES, _NESTED = f"{_PREFIX}defects", f"{_PREFIX}numbers", f"{_PREFIX}detector."


@dataclass(frozen=True, eq=False)
class LabelledPatches:
    """The patches of one labelled image.

    Attributes
    ----------
    bad
        Vectors of those that make it an anomaly, of mirror images as well, ``(n, size)``.
    vectors, far
        Of all its patches: their vectors, and their distances to the memory.
    """

    bad: Tensor
    vectors: Tensor
    far: Tensor


@dataclass(frozen=True, eq=False)
class Lessons:
    """What labelled defects add to the scores of patches.

    Attributes
    ----------
    defects
        Vectors of patches of labelled defects.
    share
        How much all of this counts: 1 where every labelled image that was left out was
        recognised.
    soft
        Added to the distance to defects.
    level, unit
        Of the contrast: where it begins to count, and how much more is worth 1.
    detector
        Learned from labelled patches; None: there is none.
    detector_level, detector_unit
        Of its scores.
    """

    defects: Tensor
    share: float
    soft: float
    level: float
    unit: float
    detector: Detector | None = None
    detector_level: float = 0.0
    detector_unit: float = 1.0

    def contrast(self, vectors: Tensor, far: Tensor, *, block: int = BLOCK) -> Tensor:
        """Return the contrast of patches.

        Parameters
        ----------
        vectors
            Of patches, ``(n, size)``.
        far
            Their distances to the memory.
        block
            How many are compared at a time.
        """
        return _ratios(vectors, far, self.defects, self.soft, block=block)

    def gained(self, contrast: Tensor, learned: Tensor | None) -> Tensor:
        """Return what patches gain; never less than 0.

        Parameters
        ----------
        contrast
            Of patches.
        learned
            What the detector says of them; None: there is none.
        """
        gained = (contrast - self.level).clamp_min(0) / self.unit
        if learned is not None:
            gained = gained + (learned - self.detector_level).clamp_min(0) / self.detector_unit
        return self.share * gained

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
            _DEFECTS: self.defects,
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
        if _DEFECTS not in tensors and _VALUES not in tensors:
            return None
        own = [tensors.pop(name, torch.empty(0)) for name in (_DEFECTS, _VALUES)]
        for value in own:
            if not value.is_floating_point() or not bool(torch.isfinite(value).all()):
                raise ValueError("the tensors of labelled defects are not of numbers")
        defects, numbers = own[0].float(), own[1]
        if defects.ndim != 2 or defects.shape[1] != size or numbers.shape != (len(_NUMBERS),):
            raise ValueError("the tensors of labelled defects are of another shape")
        found = cls(defects, **dict(zip(_NUMBERS, numbers.tolist(), strict=True)))
        good = found.soft > 0 and found.unit > 0 and found.detector_unit > 0
        if not len(defects) or not good or not 0 < found.share <= 1:
            raise ValueError("the tensors of labelled defects are out of range")
        if state is None:
            return found
        return replace(found, detector=_restored(state, tensors, size, device))


def learn_contrast(
    labelled: Sequence[LabelledPatches],
    vectors: Iterable[Tensor],
    far: NDArray[np.float64],
    n_top: int,
    seed: int,
) -> Lessons | None:
    """Learn what sets patches of labelled defects apart; None: they teach nothing.

    Parameters
    ----------
    labelled
        The labelled images.
    vectors
        Of the patches of normal images, some images at a time, ``(k, n_patches, size)``.
    far
        Distances of these patches to a memory without the image itself, ``(n, n_patches)``.
    n_top
        How many patches make up the score of an image.
    seed
        The same seed, the same patches are kept.
    """
    if not labelled:
        return None
    defects = _kept(labelled, seed)
    soft = max(_SOFT * float(np.median(far)), 1e-6)
    ratios = np.empty_like(far)
    start = 0
    for part in vectors:
        places = slice(start, start + len(part))
        there = torch.from_numpy(far[places].ravel())
        contrast = _ratios(part.flatten(0, 1), there, defects, soft)
        ratios[places] = contrast.reshape(len(part), -1).numpy()
        start += len(part)
    tops = top_mean(ratios, n_top)
    level = float(np.quantile(tops, 1 - _REACHED))
    unit = float(np.median(tops) - np.median(ratios))
    share = _share(labelled, level, soft, n_top, seed)
    if share <= 0 or unit <= 0:
        return None
    return Lessons(defects, share, soft, level, unit)


def top_mean(maps: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the mean of the n highest scores of each map."""
    flat = maps.reshape(len(maps), -1)
    highest: NDArray[np.float64] = np.partition(flat, -n, axis=1)[:, -n:].mean(1)
    return highest


def _ratios(
    vectors: Tensor, far: Tensor, defects: Tensor, soft: float, *, block: int = BLOCK
) -> Tensor:
    """Return logarithms of the distance to the memory over that to defects."""
    near = distances(vectors, defects, block=block).double() + soft
    return (far.double().clamp_min(1e-9) / near).log()


def _kept(labelled: Sequence[LabelledPatches], seed: int) -> Tensor:
    bad = torch.cat([image.bad for image in labelled])
    return bad[coreset(bad, _MOST, seed)]


def _share(
    labelled: Sequence[LabelledPatches], level: float, soft: float, n_top: int, seed: int
) -> float:
    """Return how much labels count, by labelled images that are left out by turns."""
    if len(labelled) < _FEWEST:
        return len(labelled) / _ENOUGH
    reached = []
    for place, image in enumerate(labelled):
        others = _kept([*labelled[:place], *labelled[place + 1 :]], seed)
        ratios = _ratios(image.vectors, image.far, others, soft).numpy()
        reached.append(top_mean(ratios[None], n_top)[0] > level)
    # Normal images reach the level, too: a few by definition.
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
