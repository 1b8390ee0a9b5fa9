"""Networks of inverted residual blocks: MobileNetV2 and EfficientNet-Lite."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from aloof.vision.colours import IMAGENET_MEAN, IMAGENET_SCALE, ColourNetwork

__all__ = ["EFFICIENTNET_LITE", "MOBILENET_V2", "Inverted", "InvertedPlan", "lite_plan"]


@dataclass(frozen=True)
class InvertedPlan:
    """What such a network looks like.

    Attributes
    ----------
    stem
        Channels after the first convolution.
    stages
        Expansion, channels, blocks, stride of the first block, and size of the kernels.
    epsilon
        Of batch normalisation.
    same
        Whether padding is TensorFlow's, more to the right and below, or PyTorch's.
    mean, scale
        What pixels in [0, 1] are normalised by, for each colour.
    """

    stem: int
    stages: tuple[tuple[int, int, int, int, int], ...]
    epsilon: float
    same: bool
    mean: tuple[float, float, float]
    scale: tuple[float, float, float]


MOBILENET_V2 = InvertedPlan(
    32,
    (
        (1, 16, 1, 1, 3),
        (6, 24, 2, 2, 3),
        (6, 32, 3, 2, 3),
        (6, 64, 4, 2, 3),
        (6, 96, 3, 1, 3),
        (6, 160, 3, 2, 3),
        (6, 320, 1, 1, 3),
    ),
    1e-5,
    False,
    IMAGENET_MEAN,
    IMAGENET_SCALE,
)

_LITE_STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


def lite_plan(width: float, depth: float) -> InvertedPlan:
    """Return the plan of an EfficientNet-Lite; its first and last stages keep their depth."""

    def channels(n: int) -> int:
        rounded = max(8, int(n * width + 4) // 8 * 8)
        return rounded + 8 if rounded < 0.9 * n * width else rounded

    last = len(_LITE_STAGES) - 1
    stages = tuple(
        (
            expansion,
            channels(n),
            blocks if place in (0, last) else -int(-(depth * blocks) // 1),
            stride,
            kernel,
        )
        for place, (expansion, n, blocks, stride, kernel) in enumerate(_LITE_STAGES)
    )
    return InvertedPlan(32, stages, 1e-3, True, (127 / 255,) * 3, (128 / 255,) * 3)


EFFICIENTNET_LITE = {0: lite_plan(1.0, 1.0), 1: lite_plan(1.0, 1.1), 2: lite_plan(1.1, 1.2)}


class Inverted(ColourNetwork):
    """The network of a plan, without its classifier.

    Parameters
    ----------
    plan
        What it looks like.
    """

    def __init__(self, plan: InvertedPlan) -> None:
        super().__init__(plan.mean, plan.scale)
        self.stem = _Convolution(3, plan.stem, 3, 2, plan)
        blocks, width, stride = [], plan.stem, 2
        last: dict[int, tuple[int, int]] = {}
        for expansion, channels, repeats, first, kernel in plan.stages:
            for n in range(repeats):
                step = first if n == 0 else 1
                blocks.append(_Block(width, channels, expansion, kernel, step, plan))
                width, stride = channels, stride * step
                last[stride] = len(blocks) - 1, width
        self.blocks = nn.ModuleList(blocks)
        self.channels = {stride: width for stride, (_, width) in last.items()}
        self._last = {place: stride for stride, (place, _) in last.items()}

    def forward(self, images: Tensor, strides: tuple[int, ...]) -> list[Tensor]:
        """Return the feature maps at these strides; images have pixels in [0, 1]."""
        x, found = self.stem(self.normalised(images)), {}
        for place, block in enumerate(self.blocks):
            x = block(x)
            if (stride := self._last.get(place)) in strides:
                found[stride] = x
            if len(found) == len(strides):
                break
        return [found[stride] for stride in strides]

    def cut(self, stride: int) -> None:
        """Leave out the blocks behind those of a stride."""
        place = next(place for place, known in self._last.items() if known == stride)
        self.blocks = self.blocks[: place + 1]
        self.channels = {known: n for known, n in self.channels.items() if known <= stride}


class _Convolution(nn.Module):
    """A convolution and batch normalisation, with ReLU6 or without."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int,
        stride: int,
        plan: InvertedPlan,
        *,
        groups: int = 1,
        clipped: bool = True,
    ) -> None:
        super().__init__()
        # With a stride of 1, TensorFlow's padding is PyTorch's.
        self.same = plan.same and kernel > 1 and stride > 1
        padding = 0 if self.same else kernel // 2
        self.conv = nn.Conv2d(
            inputs, outputs, kernel, stride, padding, groups=groups, bias=False
        )
        self.norm: nn.Module = nn.BatchNorm2d(outputs, plan.epsilon)
        self.clipped = clipped

    def forward(self, x: Tensor) -> Tensor:
        if self.same:
            x = _padded(x, self.conv.kernel_size[0], self.conv.stride[0])
        x = self.norm(self.conv(x))
        return F.relu6(x, inplace=not x.requires_grad) if self.clipped else x


class _Block(nn.Module):
    def __init__(
        self,
        inputs: int,
        outputs: int,
        expansion: int,
        kernel: int,
        stride: int,
        plan: InvertedPlan,
    ) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expand = _Convolution(inputs, inner, 1, 1, plan) if expansion > 1 else None
        self.depthwise = _Convolution(inner, inner, kernel, stride, plan, groups=inner)
        self.project = _Convolution(inner, outputs, 1, 1, plan, clipped=False)
        self.skips = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        inner = x if self.expand is None else self.expand(x)
        out: Tensor = self.project(self.depthwise(inner))
        return x + out if self.skips else out


def _padded(x: Tensor, kernel: int, stride: int) -> Tensor:
    """Return the maps with TensorFlow's padding, which depends on their size."""
    sides = []
    for side in (x.shape[-1], x.shape[-2]):
        total = max(0, (-(-side // stride) - 1) * stride + kernel - side)
        sides += [total // 2, total - total // 2]
    return F.pad(x, sides)
