from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
import torch

# The networks of the tests are tiny: a second thread costs more than it brings, and much
# more where the tests share the machine. Subprocesses inherit the environment.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def untouched_generators() -> Iterator[None]:
    """Every test runs with torch's and NumPy's global generators, and leaves them alone."""
    before_torch, before_numpy = torch.get_rng_state(), np.random.get_state()[1].copy()
    yield
    assert torch.equal(torch.get_rng_state(), before_torch), "torch's global RNG was used"
    assert np.array_equal(np.random.get_state()[1], before_numpy), "NumPy's RNG was used"
