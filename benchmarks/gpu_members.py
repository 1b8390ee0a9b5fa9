"""What a training step of one member costs on a GPU, in stacks of 1 to 450.

    python benchmarks/gpu_members.py [--out FILE] [--members 1,5,50,450] [--network cifar10]

Every step is a joint batch of 128 normal images and 64 anomalies through the paper's networks
(DP-VAE, decoder frozen for anomalies, bfloat16). Beside it stand a network trained one by one
with the loop a careful person writes (the same step, in the same run), and the floor: the
step's multiplications and additions, counted, at the rate the GPU reaches in a large matrix
product, measured.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from ensembles import BATCH, Case, by_hand, conv, stacked
from torch.utils.flop_counter import FlopCounterMode

from aloof.bench.images import PAPER_NETWORKS

SHAPES = {
    "fashion-mnist": (1, 28, 28),
    "cifar10": (3, 32, 32),
    "mnist": (1, 28, 28),
    "cats-vs-dogs": (3, 64, 64),
}
EPOCHS = 4


def case(name: str) -> Case:
    network, shape = dict(PAPER_NETWORKS[name]), SHAPES[name]
    architecture = conv(shape, **network)
    return Case(name, architecture, shape, 1280, (), EPOCHS, "bfloat16", 64)


def seconds_per_step(epoch: Callable[[int], object], n_rows: int) -> float:
    """Return the best of a few epochs, after two that warm up and record."""
    best = float("inf")
    for index in range(EPOCHS + 2):
        torch.cuda.synchronize()
        started = time.perf_counter()
        epoch(index)
        torch.cuda.synchronize()
        if index >= 2:
            best = min(best, time.perf_counter() - started)
    return best / (n_rows // BATCH)


def peak_rate() -> float:
    """Return the operations a second of a large bfloat16 product."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    best = float("inf")
    for _ in range(10):
        torch.cuda.synchronize()
        started = time.perf_counter()
        a @ b
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - started)
    return 2 * 8192**3 / best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    parser.add_argument("--members", default="1,5,50,450")
    parser.add_argument("--network", action="append", choices=list(SHAPES))
    options = parser.parse_args()
    device, rate = torch.device("cuda", 0), peak_rate()
    print(
        f"torch {torch.__version__}, {torch.cuda.get_device_name()}, {rate / 1e12:.0f} TFLOP/s"
    )
    print(f"{'network':16}{'members':>8}{'us/member-step':>16}{'speed-up':>10}{'x floor':>9}")
    records = []
    for name in options.network or ["fashion-mnist", "cifar10"]:
        problem = case(name)
        n_rows = problem.n_rows
        data = torch.rand(n_rows + problem.n_anomaly, *problem.shape, device=device)
        alone_epoch = by_hand(problem, data, device)
        with FlopCounterMode(display=False) as counter:
            alone_epoch(0)
        floor = counter.get_total_flops() / (n_rows // BATCH) / rate
        alone = seconds_per_step(alone_epoch, n_rows)
        print(
            f"{name:16}{'by hand':>8}{1e6 * alone:16.0f}{'':10}{alone / floor:9.1f}", flush=True
        )
        for members in map(int, options.members.split(",")):
            gc.collect()  # recorded steps refer to themselves
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            step = seconds_per_step(stacked(problem, data, device, members), n_rows) / members
            record = {
                "network": name,
                "members": members,
                "us_per_member_step": 1e6 * step,
                "by_hand_us": 1e6 * alone,
                "floor_us": 1e6 * floor,
                "peak_memory_gib": torch.cuda.max_memory_allocated() / 2**30,
            }
            records.append(record)
            print(
                f"{name:16}{members:8}{1e6 * step:16.0f}{alone / step:9.1f}x{step / floor:9.1f}"
                f"   {record['peak_memory_gib']:.1f} GiB",
                flush=True,
            )
    if options.out is not None:
        options.out.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
