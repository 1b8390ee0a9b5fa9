from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from aloof.vision.inverted import MOBILENET_V2, Inverted


@pytest.fixture(scope="session")
def network() -> Inverted:
    """Return a MobileNetV2 with random weights, as alive as trained ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = Inverted(MOBILENET_V2).eval()
        for module in made.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
                module.weight.data.uniform_(0.8, 1.2)
                module.bias.data.normal_(0, 0.2)
            if isinstance(module, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(module.weight)
    return made


@pytest.fixture(scope="session")
def weights(network: Inverted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with the weights of the network."""
    path = tmp_path_factory.mktemp("weights") / "random.safetensors"
    save_file({k: v.contiguous() for k, v in network.state_dict().items()}, path)
    return path
