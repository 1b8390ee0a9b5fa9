"""The sentence VAE: time of a training step, members stacked or one after the other.

    python benchmarks/sentences.py [--device cuda] [--members 5 10] [--words 10000] [--compile]

Sentences are made up; sizes are those of the experiment with film reviews: 128 sentences of up
to 20 words, a state of 256, 32 latent axes. The first epoch warms up and does not count.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import torch

from aloof.networks import END
from aloof.text import SentenceNetworks, train_sentences
from aloof.training import EpochReport
from aloof.vae import Objective, TrainingConfig, VAEProblem

BATCH, LENGTH, STEPS = 128, 20, 10


def sentences(n_words: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    tokens = np.zeros((BATCH * STEPS, LENGTH + 1), np.int64)
    for row in tokens:
        size = rng.integers(5, LENGTH + 1)
        row[:size] = rng.integers(4, n_words, size)
        row[size] = END
    return tokens


def step_time(tokens: np.ndarray, n_words: int, members: int, config: TrainingConfig) -> float:
    """Return the milliseconds of a step of all members."""
    device = torch.device(options.device)
    ends: list[float] = []

    def note(report: EpochReport) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()
        ends.append(time.perf_counter())

    problem = VAEProblem(
        np.arange(len(tokens)),
        seeds=range(members),
        objective=Objective("vae", likelihood="categorical"),
    )
    train_sentences(
        tokens,
        np.full((n_words, 100), np.nan),
        [problem],
        config,
        networks=SentenceNetworks(options.hidden, 32),
        device=device,
        on_epoch=note,
    )
    return 1e3 * float(np.min(np.diff(ends))) / STEPS


def main() -> None:
    tokens = sentences(options.words)
    config = TrainingConfig(
        max_epochs=3,
        warmup_epochs=0,
        batch_size=BATCH,
        context_dropout=(0.0, 0.5),
        precision="bfloat16" if options.device == "cuda" else "float32",
    )
    print(f"{'members':>8}{'stacked':>12}{'loop':>12}{'compiled':>12}   ms a step of all")
    for members in options.members:
        times = [
            step_time(tokens, options.words, members, replace(config, engine=engine))
            for engine in ("stacked", "loop")
        ]
        if options.compile:
            times.append(
                step_time(tokens, options.words, members, replace(config, compile=True))
            )
        print(f"{members:>8}" + "".join(f"{value:>12.1f}" for value in times), flush=True)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--device", default="cpu")
parser.add_argument("--members", type=int, nargs="+", default=[5])
parser.add_argument("--words", type=int, default=2000)
parser.add_argument("--hidden", type=int, default=256)
parser.add_argument("--compile", action="store_true")

if __name__ == "__main__":
    options = parser.parse_args()
    torch.set_num_threads(2)
    main()
