"""Vision transformers, against layers of torch, with the names that others give them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

from aloof.exceptions import BackboneError
from aloof.vision import load_backbone
from aloof.vision.transformer import TransformerPlan

WIDTH, DEPTH, PATCH, GRID, REGISTERS = 64, 3, 4, 5, 2
MEAN = torch.tensor([0.485, 0.456, 0.406]).reshape(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).reshape(3, 1, 1)


class Reference(nn.Module):
    """A transformer made of torch's own layers."""

    def __init__(self, registers: int) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.cls = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.registers = nn.Parameter(torch.randn(1, registers, WIDTH))
        self.positions = nn.Parameter(torch.randn(1, 1 + GRID**2, WIDTH))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                WIDTH, 1, 4 * WIDTH, 0.0, "gelu", 1e-6, batch_first=True, norm_first=True
            )
            for _ in range(DEPTH)
        )
        self.norm = nn.LayerNorm(WIDTH, 1e-6)
        for name, value in self.named_parameters():
            if name.endswith("bias") or "norm" in name:
                value.data += 0.2 * torch.randn_like(value)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patch((images - MEAN) / STD)
        rows, columns = x.shape[2:]
        places = self.positions[:, 1:].mT.reshape(1, WIDTH, GRID, GRID)
        if (rows, columns) != (GRID, GRID):
            places = F.interpolate(places, (rows, columns), mode="bicubic", antialias=True)
        x = (x + places).flatten(2).mT
        n = len(x)
        first = (self.cls + self.positions[:, :1]).expand(n, -1, -1)
        x = torch.cat([first, self.registers.expand(n, -1, -1), x], 1)
        found = []
        for number, layer in enumerate(self.layers):
            x = layer(x)
            if number in (1, 2):
                found.append(self.norm(x)[:, 1 + self.registers.shape[1] :])
        return torch.cat(found, 2).mT.reshape(n, 2 * WIDTH, rows, columns)


def dinov2(network: Reference) -> dict[str, Tensor]:
    """Return its weights as DINOv2 and timm name them, with scales of layers."""
    found = {
        "cls_token": network.cls,
        "pos_embed": network.positions,
        "mask_token": torch.zeros(1, WIDTH),
        **{f"patch_embed.proj.{k}": v for k, v in network.patch.state_dict().items()},
        **{f"norm.{k}": v for k, v in network.norm.state_dict().items()},
    }
    if network.registers.shape[1]:
        found["register_tokens"] = network.registers
    names = {
        r"self_attn\.in_proj_": "attn.qkv.",
        r"self_attn\.out_proj": "attn.proj",
        "linear1": "mlp.fc1",
        "linear2": "mlp.fc2",
    }
    for n, layer in enumerate(network.layers):
        for name, value in layer.state_dict().items():
            for pattern, ours in names.items():
                name = re.sub(pattern, ours, name)
            for number, part in ((1, "attn.proj"), (2, "mlp.fc2")):
                if name.startswith(part):
                    value = value / (number + 1)
                    found[f"blocks.{n}.ls{number}.gamma"] = torch.full((WIDTH,), number + 1.0)
            found[f"blocks.{n}.{name}"] = value
    return {name: value.detach().clone().contiguous() for name, value in found.items()}


def torchvision(network: Reference) -> dict[str, Tensor]:
    found = {
        "class_token": network.cls,
        "encoder.pos_embedding": network.positions,
        **{f"conv_proj.{k}": v for k, v in network.patch.state_dict().items()},
        **{f"encoder.ln.{k}": v for k, v in network.norm.state_dict().items()},
        "heads.head.weight": torch.zeros(10, WIDTH),
    }
    names = {"self_attn": "self_attention", "norm1": "ln_1", "norm2": "ln_2"}
    names |= {"linear1": "mlp.0", "linear2": "mlp.3"}
    for n, layer in enumerate(network.layers):
        for name, value in layer.state_dict().items():
            for theirs, ours in names.items():
                name = name.replace(theirs, ours)
            found[f"encoder.layers.encoder_layer_{n}.{name}"] = value
    return {name: value.detach().clone().contiguous() for name, value in found.items()}


def transformers(network: Reference) -> dict[str, Tensor]:
    """Return its weights as the models of transformers have them, under a prefix."""
    found = {}
    names = {
        r"^(cls_token|mask_token|register_tokens)": r"embeddings.\1",
        "^pos_embed": "embeddings.position_embeddings",
        r"^patch_embed\.proj": "embeddings.patch_embeddings.projection",
        r"^norm\.": "layernorm.",
        r"^blocks\.": "encoder.layer.",
        r"attn\.proj": "attention.output.dense",
        r"ls(\d)\.gamma": r"layer_scale\1.lambda1",
    }
    for name, value in dinov2(network).items():
        for pattern, theirs in names.items():
            name = re.sub(pattern, theirs, name)
        if ".attn.qkv." in name:
            for part, own in zip(("query", "key", "value"), value.chunk(3), strict=True):
                key = name.replace(".attn.qkv.", f".attention.attention.{part}.")
                found[f"dinov2.{key}"] = own.contiguous()
        else:
            found[f"dinov2.{name}"] = value
    return found


@pytest.mark.parametrize(
    ("named", "registers"), [(dinov2, REGISTERS), (torchvision, 0), (transformers, REGISTERS)]
)
def test_features_are_those_of_torchs_own_layers(
    named: object, registers: int, tmp_path: Path
) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = Reference(registers).eval()
        images = torch.rand(2, 3, 12, 28)
    save_file(named(network), tmp_path / "vit.safetensors")  # type: ignore[operator]
    backbone = load_backbone(tmp_path / "vit.safetensors")
    plan = TransformerPlan(WIDTH, DEPTH, PATCH, GRID, 1 + registers)
    assert backbone.facts.architecture == plan.name
    assert TransformerPlan.named(plan.name) == plan
    assert (backbone.strides, backbone.channels) == ((PATCH,), [2 * WIDTH])
    with torch.no_grad():
        for size in ((20, 20), (12, 28)):  # the grid that it learned, and another one
            own = F.interpolate(images, size)
            (found,) = backbone(own)
            torch.testing.assert_close(found, network(own), rtol=1e-4, atol=1e-4)
        (stretched,) = backbone(images[..., :27])
    assert stretched.shape == (2, 2 * WIDTH, 3, 7)


@pytest.mark.parametrize("damage", ["gated", "no positions", "odd grid", "swapped"])
def test_other_transformers_are_refused(damage: str, tmp_path: Path) -> None:
    with torch.random.fork_rng(devices=[]):
        tensors = dinov2(Reference(0))
    if damage == "gated":  # as in the giant DINOv2
        tensors = {name.replace("mlp.fc1", "mlp.w12"): v for name, v in tensors.items()}
    elif damage == "no positions":  # as in DINOv3
        del tensors["pos_embed"]
    elif damage == "odd grid":
        tensors["pos_embed"] = torch.zeros(1, 24, WIDTH)
    else:
        tensors["blocks.0.mlp.fc1.weight"] = torch.zeros(WIDTH, 4 * WIDTH)
    save_file(tensors, tmp_path / "vit.safetensors")
    with pytest.raises(BackboneError, match="a network that is not known here"):
        load_backbone(tmp_path / "vit.safetensors")


@pytest.mark.parametrize("name", ["vit_96x9999_patch4", "vit_0x1_patch4_grid2_tokens1", "os"])
def test_a_model_cannot_name_what_is_no_network(name: str) -> None:
    from aloof.vision.architectures import make_network

    with pytest.raises(BackboneError, match="There is no network"):
        make_network(name)
