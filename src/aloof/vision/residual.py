"""ResNets, as torchvision and timm name their parts."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from aloof.vision.colours import ColourNetwork

__all__ = ["OWN", "RESNETS", "ResNet", "ResNetPlan"]


@dataclass(frozen=True)
class ResNetPlan:
    """What a ResNet looks like.

    Attributes
    ----------
    blocks
        Of each of the four stages.
    bottleneck
        Whether blocks have three convolutions, and four times the channels outside.
    width
        Channels inside the blocks of the first stage.
    stem
        Channels after the first convolution.
    """

    blocks: tuple[int, int, int, int]
    bottleneck: bool
    width: int = 64
    stem: int = 64


OWN = "small_resnet"  # what learns from a user's own images
RESNETS = {
    "resnet18": ResNetPlan((2, 2, 2, 2), False),
    "resnet34": ResNetPlan((3, 4, 6, 3), False),
    "resnet50": ResNetPlan((3, 4, 6, 3), True),
    "resnet101": ResNetPlan((3, 4, 23, 3), True),
    "wide_resnet50_2": ResNetPlan((3, 4, 6, 3), True, 128),
    OWN: ResNetPlan((1, 1, 1, 1), False, 16, 16),
}


class ResNet(ColourNetwork):
    """The network of a plan, without its classifier.

    Parameters
    ----------
    plan
        What it looks like.
    """

    def __init__(self, plan: ResNetPlan) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, plan.stem, 7, 2, 3, bias=False)
        self.bn1: nn.Module = nn.BatchNorm2d(plan.stem)
        width = plan.stem
        self.channels = {}
        for n, repeats in enumerate(plan.blocks):
            inner = plan.width << n
            outputs = plan.stem * (4 if plan.bottleneck else 1) << n
            stage = []
            for k in range(repeats):
                stride = 2 if n and not k else 1
                stage.append(_Block(width, inner, outputs, stride, plan.bottleneck))
                width = outputs
            setattr(self, f"layer{n + 1}", nn.Sequential(*stage))
            self.channels[4 << n] = outputs

    def forward(self, images: Tensor, strides: tuple[int, ...]) -> list[Tensor]:
        """Return the feature maps at these strides; images have pixels in [0, 1]."""
        x = F.relu(self.bn1(self.conv1(self.normalised(images))))
        x, found = F.max_pool2d(x, 3, 2, 1), {}
        for n in range(4):
            x = getattr(self, f"layer{n + 1}")(x)
            found[4 << n] = x
            if 4 << n >= max(strides):
                break
        return [found[stride] for stride in strides]

    def cut(self, stride: int) -> None:
        """Leave out the stages behind that of a stride."""
        for n in range(4):
            if 4 << n > stride:
                setattr(self, f"layer{n + 1}", nn.Sequential())
        self.channels = {known: n for known, n in self.channels.items() if known <= stride}


class _Block(nn.Module):
    def __init__(
        self, inputs: int, inner: int, outputs: int, stride: int, bottleneck: bool
    ) -> None:
        super().__init__()
        first = (inputs, inner, 1, 1) if bottleneck else (inputs, inner, 3, stride)
        second = (inner, inner, 3, stride) if bottleneck else (inner, outputs, 3, 1)
        self.conv1, self.bn1 = _convolution(*first)
        self.conv2, self.bn2 = _convolution(*second)
        self.bottleneck = bottleneck
        if bottleneck:
            self.conv3, self.bn3 = _convolution(inner, outputs, 1, 1)
        self.downsample = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(*_convolution(inputs, outputs, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.bottleneck:
            out = self.bn3(self.conv3(F.relu(out)))
        return F.relu(out + (x if self.downsample is None else self.downsample(x)))


def _convolution(
    inputs: int, outputs: int, kernel: int, stride: int
) -> tuple[nn.Conv2d, nn.Module]:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
    return conv, nn.BatchNorm2d(outputs)
