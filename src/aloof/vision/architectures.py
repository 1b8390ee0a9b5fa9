"""Which network some weights are of, whoever named them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from math import isqrt

import torch
from torch import Tensor, nn

from aloof.exceptions import BackboneError
from aloof.vision.inverted import EFFICIENTNET_LITE, MOBILENET_V2, Inverted
from aloof.vision.residual import RESNETS, ResNet
from aloof.vision.transformer import Transformer, TransformerPlan

__all__ = ["ARCHITECTURES", "make_network", "recognised"]

ARCHITECTURES: dict[str, Callable[[], nn.Module]] = {
    "mobilenet_v2": lambda: Inverted(MOBILENET_V2),
    **{
        f"efficientnet_lite{n}": lambda plan=plan: Inverted(plan)  # type: ignore[misc]
        for n, plan in EFFICIENTNET_LITE.items()
    },
    **{name: lambda plan=plan: ResNet(plan) for name, plan in RESNETS.items()},  # type: ignore[misc]
}
_MORE = 12  # tensors of a head

_Weights = dict[str, Tensor]


def make_network(architecture: str) -> nn.Module:
    """Return an untrained network.

    Parameters
    ----------
    architecture
        A key of `ARCHITECTURES`, or the name of a `TransformerPlan`.
    """
    if architecture in ARCHITECTURES:
        return ARCHITECTURES[architecture]()
    try:
        plan = TransformerPlan.named(architecture)
    except ValueError:
        plan = None
    if plan is None:
        raise BackboneError(f"There is no network {architecture!r}.")
    return Transformer(plan)


def recognised(tensors: Mapping[str, Tensor]) -> tuple[str, _Weights] | None:
    """Return the architecture that tensors are of, and the tensors by our names.

    Parameters
    ----------
    tensors
        With the names that torchvision, timm, transformers or the authors give them.
    """
    for name, weights in _candidates(tensors):
        needed = _shapes(name)
        if all(key in weights and weights[key].shape == shape for key, shape in needed.items()):
            if len(weights) - len(needed) <= _MORE:
                return name, {key: weights[key] for key in needed}
    return None


@cache
def _shapes(architecture: str) -> dict[str, torch.Size]:
    with torch.device("meta"):
        tensors = make_network(architecture).state_dict()
    return {name: value.shape for name, value in tensors.items()}


def _candidates(tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, _Weights]]:
    if (found := _transformer(tensors)) is not None:
        yield found
    for renamed in (_from_torchvision, _from_timm, _from_lite, dict):
        weights = renamed(tensors)
        for name in ARCHITECTURES:
            yield name, weights


_PARTS = {
    "_expand_conv": "expand.conv",
    "_bn0": "expand.norm",
    "_depthwise_conv": "depthwise.conv",
    "_bn1": "depthwise.norm",
    "_project_conv": "project.conv",
    "_bn2": "project.norm",
}
_TIMM_PARTS = {
    True: {
        "conv_dw": "depthwise.conv",
        "bn1": "depthwise.norm",
        "conv_pw": "project.conv",
        "bn2": "project.norm",
    },
    False: {
        "conv_pw": "expand.conv",
        "bn1": "expand.norm",
        "conv_dw": "depthwise.conv",
        "bn2": "depthwise.norm",
        "conv_pwl": "project.conv",
        "bn3": "project.norm",
    },
}


def _from_lite(tensors: Mapping[str, Tensor]) -> _Weights:
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


def _from_timm(tensors: Mapping[str, Tensor]) -> _Weights:
    """Return the tensors of timm's MobileNetV2 or EfficientNet-Lite by our names."""
    pattern = re.compile(r"blocks\.(\d+)\.(\d+)\.(\w+)\.(\w+)")
    matches = {name: pattern.fullmatch(name) for name in tensors}
    order = sorted({(int(found[1]), int(found[2])) for found in matches.values() if found})
    renamed = {}
    for name, found in matches.items():
        if found:
            place = order.index((int(found[1]), int(found[2])))
            own = _TIMM_PARTS[found[1] == "0"].get(found[3], found[3])
            renamed[f"blocks.{place}.{own}.{found[4]}"] = tensors[name]
        else:
            stem = re.sub(r"^conv_stem\.", "stem.conv.", name)
            renamed[re.sub(r"^bn1\.", "stem.norm.", stem)] = tensors[name]
    return renamed


def _from_torchvision(tensors: Mapping[str, Tensor]) -> _Weights:
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


# From the names of torchvision and transformers to those of timm and DINOv2, and from there
# to ours.
_TO_TIMM = (
    (r"^(backbone|vit|dinov2|dinov2_with_registers)\.", ""),
    (r"^embeddings\.patch_embeddings\.projection\.|^conv_proj\.", "patch_embed.proj."),
    (r"^embeddings\.position_embeddings$|^encoder\.pos_embedding$", "pos_embed"),
    (r"^(embeddings\.)?(cls_token|class_token)$", "cls_token"),
    (r"^(embeddings\.register_tokens|register_tokens)$", "reg_token"),
    (r"^encoder\.(layer|layers\.encoder_layer)[._](\d+)\.", r"blocks.\2."),
    (r"\.(layernorm_before|ln_1)\.", ".norm1."),
    (r"\.(layernorm_after|ln_2)\.", ".norm2."),
    (r"\.self_attention\.in_proj_", ".attn.qkv."),
    (r"\.(self_attention\.out_proj|attention\.output\.dense)\.", ".attn.proj."),
    (r"\.(mlp\.0|mlp\.linear_1|intermediate\.dense)\.", ".mlp.fc1."),
    (r"\.(mlp\.3|mlp\.linear_2|output\.dense)\.", ".mlp.fc2."),
    (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"),
    (r"^(encoder\.ln|layernorm)\.", "norm."),
)
_FROM_TIMM = (
    (r"^patch_embed\.proj\.", "patch."),
    (r"\.attn\.qkv\.", ".qkv."),
    (r"\.attn\.proj\.", ".out."),
    (r"\.mlp\.fc1\.", ".up."),
    (r"\.mlp\.fc2\.", ".down."),
)


def _transformer(tensors: Mapping[str, Tensor]) -> tuple[str, _Weights] | None:
    """Return the plan of a transformer and its weights by our names; None: it is none."""
    found = _three_in_one({_renamed(name, _TO_TIMM): v for name, v in tensors.items()})
    own = [found.pop(name, None) for name in ("cls_token", "dist_token", "reg_token")]
    tokens, places = [value for value in own if value is not None], found.pop("pos_embed", None)
    patch = found.get("patch_embed.proj.weight")
    if places is None or patch is None or places.ndim != 3 or patch.ndim != 4 or not tokens:
        return None
    width = places.shape[2]
    if any(value.ndim != 3 or value.shape[2] != width for value in tokens):
        return None
    more = torch.cat([value[0] for value in tokens])
    # Positions of the tokens come before those of patches: of all, of the class, or of none.
    for n in (0, 1, len(more)):
        grid = isqrt(places.shape[1] - n)
        if grid**2 == places.shape[1] - n:
            break
    else:
        return None
    more[:n] += places[0, :n]
    depth = len({name.split(".")[1] for name in found if name.startswith("blocks.")})
    try:
        plan = TransformerPlan(width, depth, patch.shape[-1], grid, len(more))
    except ValueError:
        return None
    _fold_scales(found)
    weights = {_renamed(name, _FROM_TIMM): value for name, value in found.items()}
    return plan.name, {**weights, "tokens": more, "positions": places[0, n:]}


def _renamed(name: str, rules: tuple[tuple[str, str], ...]) -> str:
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


def _three_in_one(tensors: _Weights) -> _Weights:
    """Return query, key and value of transformers as the one layer that others have."""
    found = {}
    for name, value in tensors.items():
        match = re.fullmatch(r"(.*)\.attention\.attention\.(query|key|value)\.(\w+)", name)
        if match is None:
            found[name] = value
        elif match[2] == "query":
            parts = [name.replace(".query.", f".{part}.") for part in ("query", "key", "value")]
            if all(part in tensors for part in parts):
                joined = torch.cat([tensors[part] for part in parts])
                found[f"{match[1]}.attn.qkv.{match[3]}"] = joined
    return found


def _fold_scales(tensors: _Weights) -> None:
    """Put the scales of layers, where there are any, into the layers before them."""
    for name in [name for name in tensors if re.search(r"\.ls[12]\.gamma$", name)]:
        block, number = name[:-10], name[-7]
        scale = tensors.pop(name)
        for part in ("weight", "bias"):
            key = f"{block}.{'attn.proj' if number == '1' else 'mlp.fc2'}.{part}"
            if key in tensors and len(tensors[key]) == len(scale):
                value = tensors[key]
                tensors[key] = value * (scale[:, None] if value.ndim == 2 else scale)
