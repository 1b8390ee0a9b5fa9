"""Backbones that learn from a user's own images, where no pre-trained one fits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from aloof.exceptions import BackboneError
from aloof.training import (
    Batch,
    Learner,
    Phase,
    ProgressCallback,
    Run,
    Schedule,
    Setup,
    Stack,
    Stream,
    Task,
    derive,
)
from aloof.vision.architectures import make_network
from aloof.vision.backbones import Backbone, BackboneFacts, MapMaker
from aloof.vision.features import SMALLEST_OWN, enlarge, enlarged
from aloof.vision.pretext import PRETEXTS, Pretext
from aloof.vision.residual import OWN

__all__ = ["PretextLearner", "learn_backbone", "own_strides"]

_LARGEST = 192  # pixels across that a square of an image has at most
_COARSE = 128  # smaller images have finer maps
_BATCH, _BATCH_OF_ANOMALIES = 32, 8
_EPOCHS = 20  # in which the rate falls
_RATE = 2e-3
_LICENCE = "learned from the training images"


def own_strides(size: tuple[int, int]) -> tuple[int, int, int]:
    """Return the strides of the feature maps for images of a height and a width.

    Examples
    --------
    >>> own_strides((64, 96)), own_strides((256, 256))
    ((4, 8, 16), (8, 16, 32))
    """
    first = 4 if min(enlarged(size, SMALLEST_OWN)) <= _COARSE else 8
    return first, 2 * first, 4 * first


class _PretextNetwork(nn.Module):
    """A backbone to be, and what answers by its maps."""

    def __init__(self, pretext: Pretext, strides: tuple[int, ...]) -> None:
        super().__init__()
        self.trunk = make_network(OWN)
        self._strides, maker = strides, cast(MapMaker, self.trunk)
        maker.cut(strides[-1])
        self.head = pretext.head([maker.channels[stride] for stride in strides])

    def forward(self, images: Tensor) -> Tensor:
        """Map squares ``(n, channels, side, side)`` to answers."""
        colours = images.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)
        answers: Tensor = self.head(self.trunk(colours, self._strides))
        return answers


class PretextLearner(Learner):
    """Networks that learn a task which images set by themselves.

    Extra rows of a batch are labelled anomalies.

    Parameters
    ----------
    pretext
        The task.
    strides
        Of the feature maps that answers are found by.
    setup
        What the networks are made for.
    """

    extra_size = _BATCH_OF_ANOMALIES

    def __init__(self, pretext: Pretext, strides: tuple[int, ...], setup: Setup) -> None:
        self.pretext, self.noise_size = pretext, pretext.noise_size
        (made,) = setup.build(lambda: [_PretextNetwork(pretext, strides)])
        channels = setup.example[0].shape[1]
        example = torch.zeros(2, channels, pretext.side, pretext.side)
        self._stacks = {"network": setup.stack(made, [example])}

    @property
    def stacks(self) -> Mapping[str, Stack]:
        """All networks, by name."""
        return self._stacks

    def phase(self, epoch: int) -> Phase:
        """Return that anomalies, where there are any, join every batch."""
        return Phase(extra_interval=1)

    def loss(self, rows: Sequence[Tensor], batch: Batch, phase: Phase) -> tuple[Tensor, ...]:
        """Return the mean over the images of a batch."""
        noise, n = batch.noise, batch.n_rows
        if batch.extra_noise is not None:
            noise = torch.cat([noise, batch.extra_noise[0]], 1)
        posed = [
            self.pretext.posed(enlarge(images, SMALLEST_OWN), own, n)
            for images, own in zip(rows[0], noise, strict=True)
        ]
        squares, right = (torch.stack(parts) for parts in zip(*posed, strict=True))
        answers = self._stacks["network"](squares, training=True)
        losses = [
            self.pretext.loss(own, known, n).mean()
            for own, known in zip(answers, right, strict=True)
        ]
        return (torch.stack(losses),)

    def select(self, members: slice) -> Stack:
        """Return the networks of some members."""
        return self._stacks["network"].select(members)

    def settings(self) -> object:
        """Return the task."""
        return type(self.pretext).__qualname__, self.pretext.size, self.pretext.side


def learn_backbone(
    name: str,
    pixels: NDArray[Any],
    normal: NDArray[np.int64],
    anomalies: NDArray[np.int64],
    seed: int,
    *,
    device: torch.device,
    on_epoch: ProgressCallback | None = None,
) -> Backbone:
    """Return a small network that learned from images by a task they set themselves.

    Parameters
    ----------
    name
        A key of `PRETEXTS`.
    pixels
        Images ``(n, channels, height, width)``: bytes, or numbers in [0, 1].
    normal, anomalies
        The places of those to learn from, and of those that are known to be anomalies.
    seed
        The same seed, the same network.
    device
        Where to compute.
    on_epoch
        Called after each epoch.
    """
    if len(normal) < 2:
        raise BackboneError(
            f"The backbone {name} learns from normal images, and there is {len(normal)}. Give "
            "more of them, or name another backbone."
        )
    size = (pixels.shape[2], pixels.shape[3])
    strides, pretext = own_strides(size), PRETEXTS[name](enlarged(size, SMALLEST_OWN), _LARGEST)
    task = Task(
        rows=normal,
        extra=anomalies,
        seeds=[derive(seed, Stream.PRETEXT)],
        rows_per_epoch=-(-pretext.seen // _EPOCHS),
    )
    schedule = Schedule(
        max_epochs=_EPOCHS, batch_size=_BATCH, learning_rate=_RATE, cosine_from=0, engine="loop"
    )
    data = torch.from_numpy(np.ascontiguousarray(pixels))
    if data.dtype not in (torch.uint8, torch.float32):
        data = data.float()
    run = Run([data], device=device, n_epochs=_EPOCHS, on_epoch=on_epoch)
    (trained,) = run.train([task], partial(PretextLearner, pretext, strides), schedule)
    state = cast(Stack, trained.members).state()
    prefix = "trunk."
    weights = {
        key.removeprefix(prefix): value[0].detach().cpu().clone()
        for key, value in state.items()
        if key.startswith(prefix)
    }
    facts = BackboneFacts(name, OWN, _digest(weights), _LICENCE)
    return Backbone(facts, weights, strides).to(device)


def _digest(weights: Mapping[str, Tensor]) -> str:
    found = hashlib.sha256()
    for name in sorted(weights):
        found.update(name.encode())
        found.update(weights[name].numpy().tobytes())
    return found.hexdigest()
