from __future__ import annotations

import os

# The networks of the tests are tiny: a second thread costs more than it brings, and much
# more where tests share the machine. Libraries read this when they are loaded, and
# subprocesses inherit it.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch

# Some libraries draw random numbers while they are imported, which is no test's doing.
import aloof.baselines
import aloof.datasets
import aloof.models.table  # noqa: F401

torch.set_num_threads(1)  # also where a plugin loaded torch before
# Without a GPU its kernels are run by Triton's interpreter; Triton reads this when imported.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(autouse=True)
def untouched_generators() -> Iterator[None]:
    """Every test runs with torch's and NumPy's global generators, and leaves them alone."""
    before_torch, before_numpy = torch.get_rng_state(), np.random.get_state()
    before_python = random.getstate()
    yield
    assert torch.equal(torch.get_rng_state(), before_torch), "torch's global RNG was used"
    after = np.random.get_state()
    assert np.array_equal(after[1], before_numpy[1]), "NumPy's global RNG was used"
    assert after[2] == before_numpy[2], "NumPy's global RNG was used"
    assert random.getstate() == before_python, "Python's global RNG was used"
