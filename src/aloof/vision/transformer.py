"""Vision transformers: ViT, DeiT, DINO, and DINOv2 with registers or without."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aloof.vision.colours import ColourNetwork

__all__ = ["Transformer", "TransformerPlan"]

_NAME = re.compile(r"vit_(\d{2,4})x(\d{1,2})_patch(\d{1,2})_grid(\d{1,3})_tokens(\d{1,2})")
_OF_A_HEAD = 64  # numbers; the same in all of them
_HEADS = {1280: 16}  # but in one: the huge one


@dataclass(frozen=True)
class TransformerPlan:
    """What such a network looks like.

    Attributes
    ----------
    width
        Numbers of a token.
    depth
        Blocks.
    patch
        Pixels of a patch, across.
    grid
        Patches across that it learned where they are; others lie in between.
    tokens
        How many there are beside the patches: of the class, and registers.
    """

    width: int
    depth: int
    patch: int
    grid: int
    tokens: int

    def __post_init__(self) -> None:
        """Raise a ValueError where there is no such network."""
        if min(vars(self).values()) < 1 or self.width % self.heads or self.width > 2048:
            raise ValueError(f"there is no transformer {self.name}")

    @property
    def heads(self) -> int:
        """Of the attention."""
        return _HEADS.get(self.width, max(1, self.width // _OF_A_HEAD))

    @property
    def name(self) -> str:
        """All of it in a word; see `named`."""
        size = f"{self.width}x{self.depth}"
        return f"vit_{size}_patch{self.patch}_grid{self.grid}_tokens{self.tokens}"

    @classmethod
    def named(cls, name: str) -> TransformerPlan | None:
        """Return the plan of a name; None: it is not that of a transformer.

        Examples
        --------
        >>> TransformerPlan.named("vit_384x12_patch14_grid37_tokens5").heads
        6
        """
        match = _NAME.fullmatch(name)
        return cls(*map(int, match.groups())) if match else None


class Transformer(ColourNetwork):
    """The network of a plan, without its head.

    Its map has the tokens of patches after two thirds of the blocks and after the last,
    normalised. Images are stretched to whole patches.

    Parameters
    ----------
    plan
        What it looks like.
    """

    def __init__(self, plan: TransformerPlan) -> None:
        super().__init__()
        self.plan, width = plan, plan.width
        self.patch = nn.Conv2d(3, width, plan.patch, plan.patch)
        self.tokens = nn.Parameter(torch.zeros(plan.tokens, width))
        self.positions = nn.Parameter(torch.zeros(plan.grid**2, width))
        self.blocks = nn.ModuleList(_Block(width, plan.heads) for _ in range(plan.depth))
        self.norm = _norm(width)
        self._kept = sorted({(2 * plan.depth + 2) // 3, plan.depth})
        self.channels = {plan.patch: width * len(self._kept)}

    def forward(self, images: Tensor, strides: tuple[int, ...]) -> list[Tensor]:
        """Return the feature map; images have pixels in [0, 1]."""
        side = self.plan.patch
        rows, columns = (-(-size // side) for size in images.shape[2:])
        if (whole := (rows * side, columns * side)) != images.shape[2:]:
            images = F.interpolate(images, whole, mode="bicubic", align_corners=False)
        x = self.patch(self.normalised(images)).flatten(2).mT
        x = x + self._positions(rows, columns)
        x, found = torch.cat([self.tokens.expand(len(x), -1, -1), x], 1), []
        for number, block in enumerate(self.blocks, 1):
            x = block(x)
            if number in self._kept:
                found.append(self.norm(x)[:, len(self.tokens) :])
        made = torch.cat(found, 2).mT
        return [made.reshape(*made.shape[:2], rows, columns) for _ in strides]

    def cut(self, stride: int) -> None:
        """Leave out nothing: the map needs all of it."""

    def _positions(self, rows: int, columns: int) -> Tensor:
        grid = self.plan.grid
        if (rows, columns) == (grid, grid):
            return self.positions
        square = self.positions.mT.reshape(1, -1, grid, grid)
        moved = F.interpolate(
            square, (rows, columns), mode="bicubic", antialias=True, align_corners=False
        )
        return moved[0].flatten(1).mT


class _Block(nn.Module):
    """Attention and a perceptron, each with normalisation before and a way around it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = _norm(width), _norm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(self.norm1(x)).reshape(*x.shape[:2], 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        y: Tensor = x + self.down(F.gelu(self.up(self.norm2(x))))
        return y


def _norm(width: int) -> nn.LayerNorm:
    return nn.LayerNorm(width, 1e-6)
