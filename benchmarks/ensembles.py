"""Stacked training against networks trained one by one, as ratios of one run.

    python benchmarks/ensembles.py [--out FILE]

The opponent is the loop a careful person writes for one network: joint batches, fused Adam,
gradient clipping, a decoder that is frozen for anomalies. Both sides do the same epochs on
the same data, in turns, and the best time of several rounds counts, because shared machines
only ever make things slower. CPU figures are for 2 threads; where there is a GPU, stacks are
also measured compiled.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from aloof.networks import Architecture, ConvDecoder, ConvEncoder, MLPDecoder, MLPEncoder
from aloof.training.trainer import _StackRun
from aloof.vae import Objective, TrainingConfig, VAELearner, VAEProblem

BATCH, ANOMALIES = 128, 32


@dataclass(frozen=True)
class Case:
    """A network to train and how much of it."""

    name: str
    architecture: Architecture
    shape: tuple[int, ...]
    n_rows: int
    members: tuple[int, ...]
    rounds: int
    precision: str = "float32"
    n_anomaly: int = ANOMALIES


def mlp(hidden: tuple[int, ...], latent_dim: int) -> Architecture:
    shape = (21,)
    return Architecture(
        partial(MLPEncoder, shape, latent_dim, hidden),
        partial(MLPDecoder, shape, latent_dim, hidden),
        latent_dim,
    )


def conv(
    shape: tuple[int, ...],
    filters: Sequence[int],
    hidden: Sequence[int],
    latent_dim: int,
    **options: Any,
) -> Architecture:
    return Architecture(
        partial(ConvEncoder, shape, latent_dim, filters, hidden, **options),
        partial(ConvDecoder, shape, latent_dim, filters, hidden, **options),
        latent_dim,
    )


CPU_CASES = [
    Case("mlp 32-16-8", mlp((32, 16), 8), (21,), 1024, (1, 5, 50), 30),
    Case("mlp 128-64-16", mlp((128, 64), 16), (21,), 1024, (1, 5, 50), 15),
    Case("mlp 128-64-32 (default)", mlp((128, 64), 32), (21,), 1024, (1, 5, 50), 15),
]
GPU_CASES = [
    Case("mlp 32-16-8", mlp((32, 16), 8), (21,), 1024, (1, 5, 50), 5),
    Case(
        "conv f-mnist 16-32, 64-32",
        conv((1, 28, 28), (16, 32), (64,), 32),
        (1, 28, 28),
        1280,
        (1, 5, 50),
        4,
        "bfloat16",
        64,
    ),
    Case(
        "conv cifar 32-64-128, 128",
        conv((3, 32, 32), (32, 64, 128), (), 128),
        (3, 32, 32),
        1280,
        (1, 5, 50),
        4,
        "bfloat16",
        64,
    ),
]


def by_hand(case: Case, data: Tensor, device: torch.device) -> Callable[[int], None]:
    """Return one epoch of one network, written out as people do."""
    encoder: nn.Module = case.architecture.encoder().to(device)
    decoder: nn.Module = case.architecture.decoder().to(device)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    decoder_parameters = list(decoder.parameters())
    mixes = any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in decoder.modules())
    optimizer = torch.optim.Adam(parameters, lr=1e-3, fused=True)
    beta, alpha = 0.02, 10.0
    n, n_anomaly = case.n_rows, case.n_anomaly

    def decode_frozen(z: Tensor) -> Tensor:
        for parameter in decoder_parameters:
            parameter.requires_grad_(False)
        output: Tensor = decoder(z)
        for parameter in decoder_parameters:
            parameter.requires_grad_(True)
        return output

    def epoch(_: int) -> None:
        order = torch.randperm(n, device=device)
        for start in range(0, n, BATCH):
            normal = data[order[start : start + BATCH]]
            b = len(normal)
            anomaly = data[n + torch.randint(n_anomaly, (n_anomaly,), device=device)]
            with torch.autocast(
                device.type, torch.bfloat16, enabled=case.precision == "bfloat16"
            ):
                mean, log_var = encoder(torch.cat([normal, anomaly]))
                log_var = log_var.clamp(-12, 12)
                z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
                if mixes:
                    output, output_anomaly = decoder(z)[:b], decode_frozen(z)[b:]
                else:
                    output, output_anomaly = decoder(z[:b]), decode_frozen(z[b:])
                kl = log_var.exp() - log_var - 1
                kl_normal = 0.5 * (mean[:b] ** 2 + kl[:b]).sum(1)
                kl_anomaly = 0.5 * ((mean[b:] - alpha) ** 2 + kl[b:]).sum(1)
                error = (normal - output).square().flatten(1).mean(1)
                error_anomaly = (anomaly - output_anomaly).square().flatten(1).mean(1)
                loss = (error + beta * kl_normal).mean()
                loss = loss + (error_anomaly + beta * kl_anomaly).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 10.0)
            optimizer.step()

    return epoch


def stacked(
    case: Case, data: Tensor, device: torch.device, members: int, *, compiled: bool = False
) -> Callable[[int], object]:
    """Return one epoch of a stack."""
    problem = VAEProblem(
        normal=np.arange(case.n_rows),
        anomaly=np.arange(case.n_rows, case.n_rows + case.n_anomaly),
        seeds=list(range(members)),
        objective=Objective("dp"),
    )
    config = TrainingConfig(
        warmup_epochs=0,
        batch_size=BATCH,
        anomaly_batch_size=case.n_anomaly,
        precision=case.precision,  # type: ignore[arg-type]
        compile=compiled,
    )
    learner = partial(VAELearner, case.architecture, config)
    run = _StackRun([data], [problem.task()], learner, config.schedule, device)
    step = run.stepper()
    return lambda epoch: run._epoch(epoch, step)


def measure(case: Case, device: torch.device) -> list[dict[str, object]]:
    """Time one network by hand and stacks of several sizes, in turns."""
    data = torch.rand(case.n_rows + case.n_anomaly, *case.shape, device=device)
    epochs: dict[tuple[int, bool], Callable[[int], object]] = {
        (0, False): by_hand(case, data, device)
    }
    for members in case.members:
        epochs[members, False] = stacked(case, data, device, members)
        if device.type == "cuda":
            epochs[members, True] = stacked(case, data, device, members, compiled=True)
    best = dict.fromkeys(epochs, float("inf"))
    for index in range(case.rounds + 2):
        for key, epoch in epochs.items():
            _synchronise(device)
            started = time.perf_counter()
            epoch(index)
            _synchronise(device)
            if index >= 2:  # the first rounds warm up and compile
                best[key] = min(best[key], time.perf_counter() - started)
    steps = -(-case.n_rows // BATCH)
    alone = best[0, False] / steps
    return [
        {
            "case": case.name,
            "device": device.type,
            "members": members,
            "compiled": compiled,
            "ms_per_step": 1e3 * seconds / steps,
            "us_per_member_step": 1e6 * seconds / steps / members,
            "by_hand_us_per_step": 1e6 * alone,
            "speedup": alone * members / (seconds / steps),
        }
        for (members, compiled), seconds in best.items()
        if members
    ]


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    options = parser.parse_args()
    torch.set_num_threads(2)
    plan = [(case, torch.device("cpu")) for case in CPU_CASES]
    if torch.cuda.is_available():
        plan += [(case, torch.device("cuda", 0)) for case in GPU_CASES]
    records: list[dict[str, object]] = []
    print(f"torch {torch.__version__}, {platform.machine()}")
    print("stack against networks trained one by one, same epochs; 2 CPU threads")
    print(f"{'network':38}{'device':8}{'members':>8}{'us/member-step':>16}{'speed-up':>10}")
    for case, device in plan:
        for record in measure(case, device):
            records.append(record)
            name = f"{record['case']}{', compiled' if record['compiled'] else ''}"
            print(
                f"{name:38}{record['device']:8}{record['members']:>8}"
                f"{record['us_per_member_step']:>16.0f}{record['speedup']:>9.2f}x",
                flush=True,
            )
        print(f"{'  one network by hand':38}{'':16}{record['by_hand_us_per_step']:>16.0f}")
    if options.out is not None:
        options.out.write_text(json.dumps(records, indent=2) + "\n")


if __name__ == "__main__":
    main()
