"""Colours as networks learned to see them, mostly in photographs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["IMAGENET_MEAN", "IMAGENET_SCALE", "ColourNetwork"]

IMAGENET_MEAN = 0.485, 0.456, 0.406
IMAGENET_SCALE = 0.229, 0.224, 0.225


class ColourNetwork(nn.Module):
    """A network that moves and scales each colour before it looks at images.

    Parameters
    ----------
    mean, scale
        Of red, green and blue, in images with pixels in [0, 1].
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        mean: tuple[float, float, float] = IMAGENET_MEAN,
        scale: tuple[float, float, float] = IMAGENET_SCALE,
    ) -> None:
        super().__init__()
        for name, values in (("mean", mean), ("scale", scale)):
            # They have values even where the network itself is made on the meta device.
            colours = torch.tensor(values, dtype=torch.float32, device="cpu")
            self.register_buffer(name, colours.reshape(3, 1, 1), persistent=False)

    def normalised(self, images: Tensor) -> Tensor:
        """Return images ``(n, 3, height, width)`` as the network learned to see them."""
        return (images - self.mean) / self.scale
