"""What a detector sees of images: their pixels, features of the whole, or features of patches.

A view turns pixels into anomaly scores with the help of a detector of rows. A model without a
view has a detector that takes pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.io.sections import read_section
from aloof.models.images.manifest import ViewState
from aloof.vision import Backbone, BackboneFacts
from aloof.vision.features import feature_maps, whole_features, whole_tensor

if TYPE_CHECKING:
    from aloof.estimators import Detector

__all__ = [
    "Shape",
    "View",
    "WholeView",
    "check_view",
    "resized",
    "view_from",
    "weights_of",
]

Shape = tuple[int, int, int]

_BACKBONE = "backbone."
_WINDOW = 3  # cells across that are hidden together to see what they add


class View(Protocol):
    """How a detector of rows scores images."""

    kind: ClassVar[str]  # in the manifest

    @property
    def backbone(self) -> Backbone:
        """What makes features."""

    @property
    def shape(self) -> Shape:
        """Of the images: channels, height, width."""

    @property
    def words(self) -> str:
        """What is compared, in words."""

    @property
    def beside(self) -> list[str]:
        """What judges beside the detector of the model, in words."""

    @property
    def n_rows(self) -> int:
        """How many rows of the detector an image is."""

    def scores(self, detector: Detector, pixels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the anomaly score of each image."""

    def heat(
        self, detector: Detector, pixels: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return maps ``(n, height, width)``, scores, and a level that normal images reach."""

    def detectors(self, detector: Any) -> tuple[Any, ...]:
        """Return the detectors that score rows; the first is that of the model."""

    def seen(self, images: Tensor) -> tuple[Tensor, ...]:
        """Return the rows of detectors for some images, and what else `judged` needs."""

    def judged(self, learned: Tensor, *rest: Tensor) -> Tensor:
        """Return the scores of images.

        Takes the scores that each detector gives their rows, and what else `seen` returned.
        """

    def codes(self, detector: Detector, pixels: NDArray[Any]) -> NDArray[np.float64]:
        """Return a vector for each image, near that of images alike."""

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the rest."""


@dataclass(frozen=True, eq=False)
class WholeView:
    """Features of whole images: the means of feature maps.

    Attributes
    ----------
    backbone
        What makes the maps.
    shape
        Of the images.
    """

    backbone: Backbone
    shape: Shape

    kind: ClassVar[str] = "whole"

    @property
    def words(self) -> str:
        """What is compared, in words."""
        return "whole images"

    @property
    def beside(self) -> list[str]:
        """What judges beside the detector: nothing."""
        return []

    @property
    def n_rows(self) -> int:
        """How many rows of the detector an image is."""
        return 1

    def features(self, pixels: NDArray[Any]) -> NDArray[np.float32]:
        """Return a row for each image."""
        return whole_features(self.backbone, pixels)

    def scores(self, detector: Detector, pixels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the anomaly score of each image."""
        return detector.anomaly_score(self.features(pixels))

    def detectors(self, detector: Any) -> tuple[Any, ...]:
        """Return the detectors that score rows: that of the model."""
        return (detector,)

    def seen(self, images: Tensor) -> tuple[Tensor, ...]:
        """Return a row for each image; see `View`."""
        return (whole_tensor(self.backbone, images),)

    def judged(self, learned: Tensor, *rest: Tensor) -> Tensor:
        """Return the scores of images: those of their rows."""
        return learned

    def codes(self, detector: Detector, pixels: NDArray[Any]) -> NDArray[np.float64]:
        """Return the codes of the first member."""
        codes: NDArray[np.float64] = detector.latent(self.features(pixels))[0]
        return codes

    def heat(
        self, detector: Detector, pixels: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Return what the score of an image loses where a part of its maps is left out."""
        found = [self._heat(detector, pixels[i : i + 1]) for i in range(len(pixels))]
        scores = self.scores(detector, pixels) if len(pixels) else np.empty(0)
        heat = np.concatenate([np.empty((0, *self.shape[1:])), *found])
        return heat, scores, 0.0

    def _heat(self, detector: Detector, pixels: NDArray[Any]) -> NDArray[np.float64]:
        (maps,) = feature_maps(self.backbone, pixels)
        finest = maps[0].shape[2:]
        every = max(1, max(finest) // 16)
        ys, xs = (range(0, side, every) for side in finest)
        rows = []
        for y in ys:
            for x in xs:
                parts = []
                for one in maps:
                    height, width = one.shape[2:]
                    reach = max(1, _WINDOW * every * height // (2 * finest[0]))
                    v, u = y * height // finest[0], x * width // finest[1]
                    hidden = one[0, :, max(0, v - reach) : v + reach + 1][
                        :, :, max(0, u - reach) : u + reach + 1
                    ]
                    n, gone = height * width, hidden[0].numel()
                    rest = one[0].sum((1, 2)) - hidden.sum((1, 2))
                    parts.append(rest / max(1, n - gone))
                rows.append(torch.cat(parts))
        whole = torch.cat([one.mean((2, 3)) for one in maps], 1)
        table = torch.cat([whole, torch.stack(rows)]).cpu().numpy()
        scores = detector.anomaly_score(table)
        lost = np.maximum(0, scores[0] - scores[1:]).reshape(1, len(ys), len(xs))
        return resized(lost, self.shape[1:])

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {"kind": self.kind, "shape": list(self.shape), **self.backbone.state()}

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights of the backbone."""
        return weights_of(self.backbone)


def view_from(state: Mapping[str, Any], tensors: Mapping[str, Tensor], device: str) -> View:
    """Return the view that was kept; a ValueError says what is wrong with it."""
    from aloof.models.images.patches import PatchView

    found = read_section(ViewState, state)
    facts = BackboneFacts(found.name, found.architecture, found.sha256, found.licence)
    weights = {
        name.removeprefix(_BACKBONE): value
        for name, value in tensors.items()
        if name.startswith(_BACKBONE)
    }
    backbone = Backbone(facts, weights, tuple(found.strides))
    channels, height, width = found.shape
    if channels not in (1, 3):
        raise ValueError("images have 1 or 3 channels")
    shape = channels, height, width
    if found.kind == WholeView.kind:
        return WholeView(backbone, shape)
    if found.kind != PatchView.kind:
        raise ValueError(f"there is no view {found.kind!r}")
    own = {name: v for name, v in tensors.items() if not name.startswith(_BACKBONE)}
    return PatchView.restored(backbone, shape, found, own, device)


def check_view(view: View, detector: Detector) -> None:
    """Raise a ValueError unless a detector takes the rows that a view makes."""
    from aloof.models.images.patches import PatchView

    size = sum(view.backbone.channels)
    if isinstance(view, PatchView):
        size = view.turn.shape[1] + 2
    if detector.shape_ != (size,):
        raise ValueError("the detector is not for rows of this backbone")


def weights_of(backbone: Backbone) -> dict[str, Tensor]:
    """Return the weights of a backbone, by the names they have in a model."""
    return {f"{_BACKBONE}{name}": value for name, value in backbone.weights.items()}


def resized(maps: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.float64]:
    """Return maps ``(n, rows, columns)`` at the resolution of the images."""
    if not len(maps):
        return np.empty((0, *size))
    values = torch.from_numpy(np.ascontiguousarray(maps))[:, None]
    grown = torch.nn.functional.interpolate(values, size, mode="bicubic", align_corners=False)
    found: NDArray[np.float64] = grown[:, 0].clamp_min(0).numpy()
    return found
