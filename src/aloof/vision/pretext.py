"""Tasks that images set by themselves, to learn features from.

A task turns images into others that it knows the answer to. All that is random about it comes
as numbers from outside, one row of standard normal ones for each image.

* Geometric transformations (Golan and El-Yaniv, NeurIPS 2018): which of 72 was it? Whoever can
  tell knows what is where in an image, and which way up.
* Cut and paste (Li et al., CVPR 2021): where was a piece of the image put in another place?
  Whoever can tell knows how a surface goes on. Pieces are patches or thin scars.

Labelled anomalies are negatives: to be told from normal images by the former, and to have a
strange place somewhere for the latter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import pi

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from aloof.vision.backbones import SELF_MADE
from aloof.vision.features import joined_maps
from aloof.vision.transformations import N_TRANSFORMATIONS, transformations

__all__ = ["PRETEXTS", "CutPaste", "Geometric", "Pretext"]


class Pretext(ABC):
    """A task, for images of one size.

    Parameters
    ----------
    size
        Height and width of the images.
    largest
        Side of the squares that are cut out of them, unless they are smaller themselves.

    Attributes
    ----------
    side
        Of the squares.
    """

    noise_size: int  # random numbers for each image
    seen: int  # images that a network needs to see

    def __init__(self, size: tuple[int, int], largest: int) -> None:
        self.size, self.side = size, min(*size, largest)

    @abstractmethod
    def head(self, channels: list[int]) -> nn.Module:
        """Return what turns feature maps of so many channels into answers."""

    @abstractmethod
    def posed(self, images: Tensor, noise: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Return squares to look at, and the right answers.

        Parameters
        ----------
        images
            ``(n, channels, height, width)``, in [0, 1]. The first n set the task; the rest are
            labelled anomalies, of which only a square is cut out.
        noise
            ``(n, noise_size)``.
        n
            How many are no anomalies.
        """

    @abstractmethod
    def loss(self, answers: Tensor, right: Tensor, n: int) -> Tensor:
        """Return what is minimised, for each image ``(n,)``; the last are anomalies."""

    def _cut(self, chances: Tensor) -> Tensor:
        """Return, by two numbers in [0, 1) for each image, where in it the square begins."""
        room = chances.new_tensor(self.size) - self.side + 1
        top, left = (chances * room).floor().long().unbind(1)
        return top * self.size[1] + left


class Geometric(Pretext):
    """Tell which of 72 transformations it was."""

    noise_size = 3
    seen = 8_000

    def __init__(self, size: tuple[int, int], largest: int) -> None:
        super().__init__(size, largest)
        sources = torch.from_numpy(transformations(self.side))
        self._sources = sources // self.side * size[1] + sources % self.side

    def head(self, channels: list[int]) -> nn.Module:
        """Return a layer of the features of whole images; the last answer is about labels."""
        return _WholeHead(sum(channels), sum(_CHOICES) + 1)

    def posed(self, images: Tensor, noise: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Return squares, transformed unless they are of anomalies; and by which.

        An anomaly that is transformed may look like a normal image: what is wrong with it may
        be that it is upside down.
        """
        chances = torch.special.ndtr(noise).clamp_max(1 - 1e-6)
        which = (chances[:, 2] * N_TRANSFORMATIONS).long()
        which[n:] = 0
        places = self._sources.to(images.device)[which] + self._cut(chances[:, :2])[:, None]
        return _taken(images, places, self.side), which

    def loss(self, answers: Tensor, right: Tensor, n: int) -> Tensor:
        """Return the cross-entropy of all that makes up a transformation, and of the label."""
        *parts, label = torch.split(answers, [*_CHOICES, 1], 1)
        total, rest = torch.zeros_like(label[:n, 0]), right[:n]
        for choices, part in zip(_CHOICES[::-1], parts[::-1], strict=True):
            total = total + F.cross_entropy(part[:n], rest % choices, reduction="none")
            rest = rest // choices
        bad, good = label[n:, 0], label[:n, 0]
        if not len(bad):
            return total
        return torch.cat([total + _LABEL * F.softplus(good), _LABEL * F.softplus(-bad)])


class CutPaste(Pretext):
    """Tell where a piece of the image was put in another place."""

    noise_size = 13
    seen = 3_000

    def head(self, channels: list[int]) -> nn.Module:
        """Return a layer of the features of patches: how strange each place is."""
        return _PatchHead(sum(channels))

    def posed(self, images: Tensor, noise: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Return squares with a piece pasted into three of four; and where it is."""
        chances = torch.special.ndtr(noise).clamp_max(1 - 1e-6)
        ys, xs = _mesh(self.side, images.device)
        first = self._cut(chances[:, :2])[:, None, None]
        squares = _taken(images, (ys * self.size[1] + xs + first).flatten(1), self.side)
        inside, moved = self._piece(chances[:, 2:9], ys, xs)
        inside[n:] = False
        inside &= (chances[:, 9] < _PASTED)[:, None, None]
        pieces = _taken(squares, moved.flatten(1), self.side)
        brighter, *shifts = (2 * chances[:, 9:] - 1).unbind(1)
        colours = torch.stack(shifts, 1)[:, : squares.shape[1], None, None]
        altered = (1 + _JITTER * brighter)[:, None, None, None] * pieces + _TINT * colours
        strange = inside[:, None]
        return torch.where(strange, altered.clamp(0, 1), squares), strange.float()

    def loss(self, answers: Tensor, right: Tensor, n: int) -> Tensor:
        """Return how wrong places are, inside and outside the piece, and anomalies' worst."""
        logits, (rows, columns) = answers[:n], answers.shape[-2:]
        pasted = F.adaptive_avg_pool2d(right[:n], (rows, columns))[:, 0] >= _COVERED
        missed = _mean_where(F.softplus(-logits), pasted)
        invented = _mean_where(F.softplus(logits), ~pasted)
        rest = answers[n:].flatten(1)
        worst = rest.topk(max(1, round(_WORST * rest.shape[1])), 1).values.mean(1)
        return torch.cat([missed + invented, F.softplus(-worst)])

    def _piece(self, chances: Tensor, ys: Tensor, xs: Tensor) -> tuple[Tensor, Tensor]:
        """Return which pixels a piece covers, ``(n, side, side)``, and what is seen there."""
        area, shape, angle, y, x, down, right = (
            part[:, None, None] for part in chances.unbind(1)
        )
        thin = shape < _SCARS
        ratio = torch.where(thin, 6 + 6 * area, torch.exp(2.4 * (shape - 0.5)))
        share = torch.where(thin, 0.002 + 0.01 * area, 0.003 + 0.1 * area**2)
        height = self.side * (share / ratio).sqrt()
        width = height * ratio
        turned = torch.where(thin, pi * angle, 0.0)
        v, u = ys - self.side * y, xs - self.side * x
        along = (u * turned.cos() + v * turned.sin()).abs()
        across = (v * turned.cos() - u * turned.sin()).abs()
        inside = (along <= width.clamp_min(2) / 2) & (across <= height.clamp_min(2) / 2)
        # A piece is taken from at least an eighth of the side away, on the other end of it
        # where it would lie outside.
        steps = (((0.125 + 0.75 * by) * self.side).long() for by in (down, right))
        y2, x2 = ((at + step) % self.side for at, step in zip((ys, xs), steps, strict=True))
        return inside, y2 * self.side + x2


PRETEXTS: dict[str, type[Pretext]] = dict(zip(SELF_MADE, (Geometric, CutPaste), strict=True))

_CHOICES = (2, 3, 3, 4)  # mirrored, moved down and to the right, turned: 72 together
_LABEL = 0.1  # what a label counts, beside a transformation
_PASTED = 0.75  # share of the images that get a piece
_SCARS = 0.5  # share of the pieces that are thin
_JITTER, _TINT = 0.15, 0.08  # how far a piece may be brighter, and of another colour
_COVERED = 0.25  # of a place, by a piece, for it to be strange
_WORST = 0.01  # share of the places of an anomaly that are taken to be strange


class _WholeHead(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)

    def forward(self, maps: list[Tensor]) -> Tensor:
        logits: Tensor = self.layer(torch.cat([one.mean((2, 3)) for one in maps], 1))
        return logits


class _PatchHead(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.layer = nn.Conv2d(inputs, 1, 1)

    def forward(self, maps: list[Tensor]) -> Tensor:
        logits: Tensor = self.layer(joined_maps(maps))[:, 0]
        return logits


def _mesh(side: int, device: torch.device) -> tuple[Tensor, Tensor]:
    steps = torch.arange(side, device=device)
    ys, xs = torch.meshgrid(steps, steps, indexing="ij")
    return ys, xs


def _taken(images: Tensor, places: Tensor, side: int) -> Tensor:
    """Return the pixels at places ``(n, side * side)`` of each image, as squares."""
    pixels = images.flatten(2)
    found = pixels.gather(2, places[:, None].expand(-1, pixels.shape[1], -1))
    return found.reshape(*found.shape[:2], side, side)


def _mean_where(values: Tensor, chosen: Tensor) -> Tensor:
    """Return the mean of some values of each map; 0 where there are none."""
    weights = chosen.to(values.dtype)
    return (values * weights).sum((1, 2)) / weights.sum((1, 2)).clamp_min(1)
