"""Defects of a few pixels: every patch of an image is compared with patches of normal ones.

A patch is compared in two ways. A memory keeps patches that lie near all others, and the
distance to the nearest counts, for how far apart those lie. A VAE learns from the same patches,
and where they are in the image. Both are measured by how much normal images differ, their mean
counts, and neither knows labels. What labelled defects teach is added to that: of an image that
is known to be bad only some patch is, so the oddest for the memory are its anomalies, or those
under a mask; see `aloof.models.images.lessons`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from shutil import disk_usage
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.models.images.lessons import LabelledPatches, Lessons, learn_direction, top_mean
from aloof.models.images.manifest import ViewState
from aloof.models.images.reading import allocated
from aloof.models.images.views import Shape, resized, weights_of
from aloof.phrases import count
from aloof.training import Stream, derive
from aloof.vision import Backbone
from aloof.vision.features import LARGEST_AT_ONCE, patch_features, patch_grid, patch_tensor
from aloof.vision.memory import BLOCK, coreset, oddness, spreads

if TYPE_CHECKING:
    from aloof.estimators import Detector

__all__ = [
    "PATCH_DEFAULTS",
    "PatchRows",
    "PatchView",
    "learn_patches",
    "n_top",
    "patch_epochs",
    "top_mean",
    "with_places",
]

PATCH_DEFAULTS: dict[str, Any] = {
    "hidden": (128, 64),
    "latent_dim": 16,
    "batch_size": 256,
    "anomaly_batch_size": 64,
    "learning_rate": 2e-3,
}
_STEPS = 1500  # batches that a network learns from
_MOST_PATCHES = 40_000  # of normal images, to learn from
_MEMORY = 3_000  # of them that are kept
_SIZE = 96  # of the vector of a patch
_FLATTEST = 1e-6  # of the variance of the first component; less is rounding
_WHITE = 0.75  # how far principal components are made alike: 1 is wholly
_SCALED_BY = 100  # images whose patches say what is usual
_TOP = 0.003  # share of the patches of an image that make up its score
_MOST_TOP = 40  # patches that make up the score of an image that is looked at by tiles
_WORST = 16  # patches of a labelled image that count as anomalies, where there is no mask
_UNDER = 0.3  # of the best covered patch; the patches under a mask are covered at least so far
_BUDGET = 2**30  # bytes that features of training images may take in memory
_AT_ONCE, _PIXELS_AT_ONCE = 16, 2**26  # images, and all their numbers
_TURNED_AT_ONCE = 2**16  # patches
_LEARNED = ("mean", "turn", "memory", "spread", "usual")  # tensors of a view
_PARTS = 2  # what is compared: memory and detector
_BRIGHT = 2.0  # scores of patches that are drawn brightest are at least these
_STEADY = 0.05  # of the height of a normal image's top; they differ at least as much


@dataclass(frozen=True, eq=False)
class PatchView:
    """How patches are compared.

    Attributes
    ----------
    backbone
        What makes features.
    shape
        Of the images.
    mean, turn
        Features less their mean, times this, are the vector of a patch.
    memory, spread
        Vectors of patches of normal images, and how far apart they lie.
    usual
        Of the memory and of the detector: what counts 0, the score of a patch in the middle,
        and what counts 1. A normal image in the middle scores 1.
    lessons
        What labelled defects add; None: nothing.
    tiled
        Whether images are looked at tile by tile: they are large.
    """

    backbone: Backbone
    shape: Shape
    mean: Tensor
    turn: Tensor
    memory: Tensor
    spread: Tensor
    usual: Tensor
    lessons: Lessons | None = None
    tiled: bool = False

    kind: ClassVar[str] = "patches"

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return patch_grid(self.backbone, self.shape[1:], tiled=self.tiled)

    @property
    def words(self) -> str:
        """What is compared, in words."""
        rows, columns = self.grid
        labels = "" if self.lessons is None else f"; labels count {self.lessons.share:.2f}"
        tiles = ", by tiles" if self.tiled else ""
        return f"{columns} x {rows} patches of each image{tiles}{labels}"

    @property
    def beside(self) -> list[str]:
        """What judges beside the detector of the model, in words."""
        found = [f"memory of {count(len(self.memory), 'patch', 'patches')}"]
        if self.lessons is not None:
            found.append("direction in which labelled defects lie")
            if (taught := self.lessons.detector) is not None:
                members = count(len(taught.member_seeds_), "member")
                found.append(f"{taught.title} with {members}, which knows labelled defects")
        return found

    @property
    def n_rows(self) -> int:
        """How many rows of the detector an image is."""
        return self.grid[0] * self.grid[1]

    @property
    def n_top(self) -> int:
        """How many patches make up the score of an image."""
        # A defect is no larger where the image is.
        return min(n_top(self.grid), _MOST_TOP) if self.tiled else n_top(self.grid)

    def scores(self, detector: Detector, pixels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the mean of the highest scores of each image's patches."""
        found = [top_mean(maps, self.n_top) for maps in self._maps(detector, pixels)]
        return np.concatenate([np.empty(0), *found])

    def maps(self, detector: Detector, pixels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scores of patches, ``(n, rows, columns)``."""
        return np.concatenate([np.empty((0, *self.grid)), *self._maps(detector, pixels)])

    def heat(
        self, detector: Detector, pixels: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return the scores of patches at the resolution of the images."""
        maps = self.maps(detector, pixels)
        return resized(maps, self.shape[1:]), top_mean(maps, self.n_top), _BRIGHT

    def codes(self, detector: Detector, pixels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the code of the worst patch of each image."""
        worst = []
        for vectors in self.vectors(pixels):
            rows = with_places(vectors).numpy()
            maps = self._combined(detector, vectors).reshape(len(vectors), -1)
            worst.append(rows.reshape(*maps.shape, -1)[np.arange(len(maps)), maps.argmax(1)])
        codes: NDArray[np.float64] = detector.latent(np.concatenate(worst))[0]
        return codes

    def vectors(self, pixels: NDArray[Any]) -> Iterator[Tensor]:
        """Yield the vectors of patches of some images at a time."""
        found = patch_features(self.backbone, pixels, tiled=self.tiled, then=self._turned)
        yield from map(torch.from_numpy, found)

    def turned(self, features: NDArray[np.float16]) -> Tensor:
        """Return the vectors of patches that have these features."""
        flat = torch.from_numpy(features).flatten(0, -2)
        found = [self._turned(part) for part in torch.split(flat, _TURNED_AT_ONCE)]
        return torch.cat(found).reshape(*features.shape[:-1], -1)

    def _turned(self, features: Tensor) -> Tensor:
        return (features.float().to(self.mean.device) - self.mean) @ self.turn

    def score_of(self, detector: Detector, features: NDArray[np.float16]) -> NDArray[Any]:
        """Return the scores of images whose patches have these features."""
        return top_mean(self.map_of(detector, features), self.n_top)

    def map_of(self, detector: Detector, features: NDArray[np.float16]) -> NDArray[np.float64]:
        """Return the scores of patches that have these features."""
        return self._combined(detector, self.turned(features))

    def _maps(self, detector: Detector, pixels: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
        for vectors in self.vectors(pixels):
            yield self._combined(detector, vectors)

    def _combined(self, detector: Detector, vectors: Tensor) -> NDArray[np.float64]:
        """Return what the memory, the detector and labels say of patches."""
        seen = self._seen(vectors)
        rows = seen[0].numpy()
        learned = [each.anomaly_score(rows) for each in self.detectors(detector)]
        joined = self._joined(*map(torch.from_numpy, learned), *seen[1:])
        return joined.numpy().reshape(vectors.shape[:-1])

    def _seen(self, vectors: Tensor, block: int = BLOCK) -> tuple[Tensor, ...]:
        """Return the rows of detectors, what the memory says, and what labels say."""
        flat = vectors.flatten(0, -2)
        odd = oddness(flat, self.memory, self.spread, block=block)
        rows = with_places(vectors)
        return (rows, odd) if self.lessons is None else (rows, odd, self.lessons.along(flat))

    def _joined(self, learned: Tensor, *rest: Tensor) -> Tensor:
        """Return the scores of patches by those of detectors, and what `_seen` gives."""
        taught = rest[0] if len(self.detectors(None)) > 1 else None
        odd, *along = rest if taught is None else rest[1:]
        usual = self.usual.double()
        middle, unit = usual[:, 0], usual[:, 1] - usual[:, 0]
        by_memory = (odd.double() - middle[0]) / unit[0]
        by_detector = (learned.double() - middle[1]) / unit[1]
        total = (by_memory + by_detector) / _PARTS
        if self.lessons is not None:
            total = total + self.lessons.gained(along[0], taught)
        return total

    def detectors(self, detector: Any) -> tuple[Any, ...]:
        """Return the detectors that score rows; the first is that of the model."""
        taught = None if self.lessons is None else self.lessons.detector
        return (detector,) if taught is None else (detector, taught)

    def seen(self, images: Tensor) -> tuple[Tensor, ...]:
        """Return the rows of detectors for some images, and what else `judged` needs."""
        vectors = patch_tensor(self.backbone, images, tiled=self.tiled, then=self._turned)
        return self._seen(vectors, block=vectors.shape[0] * self.n_rows)

    def judged(self, learned: Tensor, *rest: Tensor) -> Tensor:
        """Return the scores of images by the detectors' scores of their rows."""
        maps = self._joined(learned, *rest).reshape(-1, self.n_rows)
        return maps.topk(self.n_top, 1).values.mean(1)

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        lessons = None if self.lessons is None else self.lessons.state()
        own = {"kind": self.kind, "shape": list(self.shape), "tiled": self.tiled}
        own |= {"lessons": lessons}
        return {**own, **self.backbone.state()}

    def tensors(self) -> dict[str, Tensor]:
        """Return what was learned, and the weights of the backbone."""
        own = {name: getattr(self, name) for name in _LEARNED}
        lessons = {} if self.lessons is None else self.lessons.tensors()
        return {**own, **lessons, **weights_of(self.backbone)}

    @classmethod
    def restored(
        cls,
        backbone: Backbone,
        shape: Shape,
        state: ViewState,
        tensors: dict[str, Tensor],
        device: str,
    ) -> PatchView:
        """Return the view that was kept; a ValueError says what is wrong with it."""
        if "memory" in tensors and "spread" not in tensors:
            raise ValueError(
                "the model is of an older version, which compared patches in another way: fit "
                "it again"
            )
        n = sum(backbone.channels)
        size = tensors["turn"].shape[-1] if "turn" in tensors else 0
        lessons = Lessons.taken(state.lessons, tensors, size, device)
        shapes = {"mean": (n,), "turn": (n, size), "usual": (_PARTS, 2)}
        for name in _LEARNED:
            value = tensors.get(name)
            good = value is not None and value.is_floating_point() and value.ndim in (1, 2)
            if not good or not bool(torch.isfinite(tensors[name]).all()):
                raise ValueError(f"the tensor images.{name} is missing or not of numbers")
            if name in shapes and tuple(tensors[name].shape) != shapes[name]:
                raise ValueError(f"the tensor images.{name} is of another shape")
        memory = tensors["memory"]
        if memory.ndim != 2 or not len(memory) or memory.shape[1] != size or not size:
            raise ValueError("the tensor images.memory is of another shape")
        spread = tensors["spread"]
        if spread.shape != memory.shape[:1] or not bool((spread > 0).all()):
            raise ValueError("the tensor images.spread is not of distances")
        if not bool((tensors["usual"][:, 1] > tensors["usual"][:, 0]).all()):
            raise ValueError("the tensor images.usual is not in order")
        if extra := sorted(set(tensors) - set(_LEARNED)):
            raise ValueError(f"the tensor images.{extra[0]} is left over")
        own = {name: tensors[name] for name in _LEARNED}
        return cls(backbone, shape, **own, lessons=lessons, tiled=state.tiled)


@dataclass(frozen=True, eq=False)
class PatchRows:
    """What detectors learn of patches.

    Attributes
    ----------
    view
        All but what is usual for detectors, which `scaled` finds out.
    rows, bad
        Vectors of patches with their places, of normal images and of labelled defects.
    features
        Of the patches of all normal images.
    looked_at, odd
        Some of these images, and how odd their patches are for a memory without themselves.
    """

    view: PatchView
    rows: NDArray[np.float32]
    bad: NDArray[np.float32]
    features: _Features
    looked_at: NDArray[np.int64]
    odd: NDArray[np.float64]

    def labelled(
        self, anomalies: NDArray[Any], masks: Mapping[int, NDArray[np.bool_]], seed: int
    ) -> PatchRows:
        """Return the same, with what labelled anomalies teach.

        Parameters
        ----------
        anomalies
            Images ``(n, channels, height, width)``.
        masks
            Where the defects of some are, ``(height, width)``, by their place.
        seed
            Of the fit.
        """
        level = float(np.median(top_mean(self.odd, self.view.n_top)))
        found = [
            _bad_rows(self.view, image, masks.get(k), level)
            for k, image in enumerate(anomalies)
        ]
        lessons = learn_direction(
            [patches for _, patches in found],
            (self.view.turned(part).flatten(1, 2) for part in self.features.of(self.looked_at)),
            self.odd,
            self.view.n_top,
        )
        bad = np.concatenate([self.bad, *(rows for rows, _ in found)])
        return replace(self, view=replace(self.view, lessons=lessons), bad=bad)

    def scaled(self, detector: Detector, taught: Detector | None) -> PatchView:
        """Return the view with what is usual for fitted detectors.

        Parameters
        ----------
        detector
            Fitted to the rows of normal images.
        taught
            Fitted to those of labelled defects as well; None: there is none.
        """
        n, lessons = self.view.n_top, self.view.lessons
        parts = self.odd, self._scores(detector)
        middles, units = zip(*(_usual(part, n) for part in parts), strict=True)
        known = zip(parts, middles, units, strict=True)
        maps = np.mean([(part - middle) / unit for part, middle, unit in known], axis=0)
        one = max(float(np.median(top_mean(maps, n))), 1e-6)
        usual = [[middle, middle + one * u] for middle, u in zip(middles, units, strict=True)]
        lessons = None if lessons is None else lessons.measured(one)
        if taught is not None and lessons is not None:
            lessons = lessons.taught(taught, self._scores(taught), n)
        made = torch.tensor(usual, dtype=torch.float64)
        return replace(self.view, usual=made, lessons=lessons)

    def _scores(self, detector: Detector) -> NDArray[np.float64]:
        """Return what a detector says of patches of the normal images that were looked at."""
        scores = [
            detector.anomaly_score(with_places(self.view.turned(found)).numpy())
            for found in self.features.of(self.looked_at)
        ]
        return np.concatenate(scores).reshape(len(self.looked_at), -1)

    def training_scores(self, view: PatchView, detector: Detector) -> NDArray[np.float64]:
        """Return the scores of all normal images."""
        everything = np.arange(len(self.features))
        return np.concatenate(
            [view.score_of(detector, found) for found in self.features.of(everything)]
        )


class _Features:
    """Features of the patches of images: made once and kept, unless the disk is too small.

    Parameters
    ----------
    backbone
        What makes them.
    pixels
        The images.
    """

    def __init__(self, backbone: Backbone, pixels: NDArray[Any], *, tiled: bool) -> None:
        self._backbone, self._pixels, self._tiled = backbone, pixels, tiled
        size = pixels.shape[2], pixels.shape[3]
        rows, columns = patch_grid(backbone, size, tiled=tiled)
        shape = len(pixels), rows, columns, sum(backbone.channels)
        self._at_once = max(1, min(_AT_ONCE, _PIXELS_AT_ONCE // prod(pixels.shape[1:])))
        self._kept: NDArray[np.float16] | None = None
        if 2 * prod(shape) <= max(_BUDGET, disk_usage(gettempdir()).free // 2):
            kept, start = allocated(shape, _BUDGET, np.float16), 0
            for found in self.of(np.arange(len(pixels))):
                kept[start : start + len(found)] = found
                start += len(found)
            self._kept = kept

    def __len__(self) -> int:
        return len(self._pixels)

    def of(self, places: NDArray[np.int64]) -> Iterator[NDArray[np.float16]]:
        """Yield the features of images at these places, some at a time."""
        for start in range(0, len(places), self._at_once):
            some = places[start : start + self._at_once]
            if self._kept is not None:
                yield self._kept[some]
                continue
            pixels = self._pixels[some]
            yield from patch_features(self._backbone, pixels, tiled=self._tiled, then=_halved)


def _halved(features: Tensor) -> Tensor:
    limit = torch.finfo(torch.float16).max
    return features.clamp(-limit, limit).half()


def learn_patches(backbone: Backbone, normal: NDArray[Any], seed: int) -> PatchRows:
    """Remember patches of normal images.

    Parameters
    ----------
    backbone
        What makes features; its finer maps are used, where it has them.
    normal
        Images ``(n, channels, height, width)``.
    seed
        Of the fit.
    """
    backbone = backbone.finer()
    channels, height, width = normal.shape[1:]
    shape = channels, height, width
    tiled = max(height, width) > LARGEST_AT_ONCE
    grid = patch_grid(backbone, (height, width), tiled=tiled)
    rng = np.random.default_rng(derive(seed, Stream.SPLIT, 1))
    each = max(1, min(grid[0] * grid[1], _MOST_PATCHES // len(normal)))
    some = _some(len(normal), _MOST_PATCHES, seed)
    kept, places, owners = [], [], []
    owner = 0
    features = _Features(backbone, normal, tiled=tiled)
    for found in features.of(some):
        flat = found.reshape(len(found), -1, found.shape[-1])
        for image in flat:
            drawn = np.sort(rng.choice(len(image), each, replace=False))
            kept.append(image[drawn])
            places.append(drawn)
            owners.append(np.full(each, owner))
            owner += 1
    values = torch.from_numpy(np.concatenate(kept)).float()
    mean, turn = _turn(values, backbone.channels)
    vectors = (values - mean) @ turn
    image_of = torch.from_numpy(np.concatenate(owners))
    chosen = coreset(vectors, _MEMORY, derive(seed, Stream.SPLIT, 2))
    memory = vectors[chosen]
    spread = spreads(memory)
    usual = torch.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    view = PatchView(backbone, shape, mean, turn, memory, spread, usual, tiled=tiled)
    # What is usual is measured without patches of the image itself in the memory.
    looked_at = _some(len(some), _SCALED_BY, seed)
    odd, place = [], 0
    for found_features in features.of(some[looked_at]):
        found_vectors = view.turned(found_features)
        n_patches = grid[0] * grid[1]
        own = torch.from_numpy(looked_at[place : place + len(found_vectors)])
        place += len(found_vectors)
        own = own.repeat_interleave(n_patches)
        several = len(some) > 1
        oddities = oddness(
            found_vectors.flatten(0, -2),
            memory,
            spread,
            own=own if several else None,
            owners=image_of[chosen] if several else None,
        )
        odd.append(oddities.reshape(-1, n_patches).double().numpy())
    everything = np.concatenate(odd)
    finite = np.where(np.isfinite(everything), everything, np.nan)
    known = np.nan_to_num(finite, nan=float(np.nanmax(finite)))
    rows = np.concatenate(
        [vectors.numpy(), _where(np.concatenate(places), grid)], 1, dtype=np.float32
    )
    return PatchRows(view, rows, rows[:0], features, some[looked_at], known)


def n_top(grid: tuple[int, int]) -> int:
    """Return how many patches make up the score of an image."""
    return max(1, min(grid[0] * grid[1], max(3, round(_TOP * grid[0] * grid[1]))))


def with_places(vectors: Tensor) -> Tensor:
    """Return vectors ``(n, rows, columns, size)`` as rows, with where they are at the end."""
    n, rows, columns, size = vectors.shape
    where = torch.from_numpy(_where(np.arange(rows * columns), (rows, columns)))
    placed = where.reshape(1, rows, columns, 2).expand(n, -1, -1, -1)
    return torch.cat([vectors, placed], 3).reshape(-1, size + 2)


def patch_epochs(n_rows: int, batch_size: int) -> int:
    """Return the passes over so many patches."""
    return max(3, min(100, round(_STEPS * batch_size / max(1, n_rows))))


def _where(places: NDArray[np.int64], grid: tuple[int, int]) -> NDArray[np.float32]:
    """Return rows and columns of patches, from -1 to 1."""
    y, x = np.divmod(places, grid[1])
    steps = np.maximum(1, np.array(grid) - 1)
    return np.asarray(np.stack([y, x], -1) / steps * 2 - 1, np.float32)


def _some(n: int, most: int, seed: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(derive(seed, Stream.SPLIT, 3))
    return np.sort(rng.permutation(n)[:most])


def _turn(values: Tensor, channels: list[int]) -> tuple[Tensor, Tensor]:
    """Return the mean of features, and what turns the rest into vectors of patches.

    Every map counts the same, however many channels it has. The vector has the principal
    components of it, and those that differ little count nearly as much as the others: a defect
    may show there.
    """
    mean = values.mean(0)
    scale = values.std(0).clamp_min(1e-6)
    share = torch.cat([torch.full((n,), n**-0.5) for n in channels]) * len(channels) ** -0.5
    weight = share / scale * len(scale) ** 0.5
    ready = (values - mean) * weight
    covariance = (ready.T @ ready / max(1, len(ready) - 1)).double()
    variances, directions = torch.linalg.eigh(covariance)
    size = min(_SIZE, len(mean), max(1, len(values) - 1))
    components = directions.flip(1)[:, :size].float()
    signs = torch.where(components.sum(0) < 0, -1.0, 1.0)
    kept = variances.flip(0)[:size].clamp_min(_FLATTEST * variances[-1].clamp_min(1e-12))
    return mean, (
        weight[:, None] * components * signs * kept.float() ** (-_WHITE / 2)
    ).contiguous()


def _usual(scores: NDArray[np.float64], n: int) -> tuple[float, float]:
    """Return the score of a patch in the middle, and how much the tops of images differ."""
    middle, tops = float(np.median(scores)), top_mean(scores, n)
    height = max(float(np.median(tops)) - middle, 1e-6 * max(1.0, abs(middle)))
    return middle, max(float(tops.std()), _STEADY * height)


def _bad_rows(
    view: PatchView, image: NDArray[Any], mask: NDArray[np.bool_] | None, level: float
) -> tuple[NDArray[np.float32], LabelledPatches]:
    """Return rows of the patches that make an image an anomaly, as it is and mirrored.

    Without a mask, these are the oddest for the memory, as far as they reach a level.
    """
    rows = []
    for flips in ((0, 1), (0,), (1,), ()):  # the image as it is comes last
        turned = np.flip(image, tuple(axis + 1 for axis in flips))
        (vectors,) = view.vectors(turned[None])
        odd = oddness(vectors.flatten(0, -2), view.memory, view.spread)
        if mask is None:
            worst = np.argsort(-odd.numpy(), kind="stable")[:_WORST]
            chosen = worst[odd.numpy()[worst] >= level]
            chosen = chosen if len(chosen) else worst[:1]
        else:
            covered = _coverage(np.flip(mask, flips), view.grid).ravel()
            chosen = np.flatnonzero(covered >= _UNDER * covered.max())
        rows.append(with_places(vectors).numpy()[chosen])
    found = np.concatenate(rows)
    bad = torch.from_numpy(np.ascontiguousarray(found[:, : view.turn.shape[1]]))
    return found, LabelledPatches(bad, vectors.flatten(0, -2))


def _coverage(mask: NDArray[np.bool_], grid: tuple[int, int]) -> NDArray[np.float64]:
    """Return which part of each patch lies under a mask."""
    values = torch.from_numpy(np.ascontiguousarray(mask)).double()[None, None]
    found: NDArray[np.float64] = torch.nn.functional.adaptive_avg_pool2d(values, grid)[
        0, 0
    ].numpy()
    return found
