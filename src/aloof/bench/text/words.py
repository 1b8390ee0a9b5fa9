"""A recurrent VAE of words: trained for many runs and objectives at once, and measured.

The VAE first learns normal sentences for a long time, then a few epochs with labelled
anomalies. Every method begins from the same networks, so the long part is trained once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.bench.text.corpus import DIRECTIONS, Corpus, TextRun, make_runs
from aloof.bench.text.settings import TextSetting
from aloof.bench.text.specification import TextSpecification
from aloof.text import SentenceScores, score_sentences, train_sentences
from aloof.training import ProgressCallback, Stream, derive, resolve_device
from aloof.vae import FitResult, Objective, VAEProblem

__all__ = ["figures", "penalised", "train_words", "tune_words", "word_runs", "word_scores"]

_EVERY = 5  # every so many normal training rows, to measure how codes spread


def word_runs(spec: TextSpecification, setting: str, corpus: Corpus) -> list[TextRun]:
    """Return the runs of a setting, without words that none of them can know."""
    min_count = spec.numbers(setting).min_count
    runs = make_runs(
        corpus.with_frequent(min_count),
        spec.runs,
        gamma_l=spec.gamma_l,
        min_count=min_count,
    )
    return [run for run in runs if run.direction in spec.directions]


def train_words(
    numbers: TextSetting,
    objectives: Sequence[Objective],
    runs: Sequence[TextRun],
    normal: Sequence[NDArray[np.int64]],
    anomaly: Sequence[NDArray[np.int64]],
    *,
    device: torch.device,
    compile: bool = False,
    checkpoint: Path | None = None,
    on_epoch: ProgressCallback | None = None,
) -> list[FitResult]:
    """Train networks for each objective and run, all as rows of one array.

    Runs know different words, so each has a copy of the sentences in its own.

    Parameters
    ----------
    numbers
        How to build and train them.
    objectives, runs, normal, anomaly
        One of each for each result: what is minimised, and which rows of which run.
    device, checkpoint, on_epoch
        As in `aloof.vae.train`.
    compile
        As in `TrainingConfig`.
    """
    if not runs:
        return []
    distinct = list({id(run): run for run in runs}.values())
    size = len(runs[0].corpus.tokens)
    first = {id(run): size * number for number, run in enumerate(distinct)}
    problems = [
        VAEProblem(
            normal=first[id(run)] + own_normal,
            anomaly=first[id(run)] + own_anomaly,
            seeds=[
                derive(2 * run.number + DIRECTIONS.index(run.direction), Stream.MEMBER, k)
                for k in range(numbers.members)
            ],
            objective=objective,
        )
        for objective, run, own_normal, own_anomaly in zip(
            objectives, runs, normal, anomaly, strict=True
        )
    ]
    return train_sentences(
        np.concatenate([run.tokens for run in distinct]),
        runs[0].corpus.vectors,
        problems,
        numbers.config(compile=compile),
        networks=numbers.networks,
        device=device,
        checkpoint=checkpoint,
        on_epoch=on_epoch,
    )


def word_scores(
    result: FitResult,
    objective: Objective,
    run: TextRun,
    rows: NDArray[np.int64],
    device: torch.device,
    *,
    penalty: bool,
) -> SentenceScores:
    """Return the scores of rows, and the parts they are made of.

    `penalty` is whether a code is charged for lying towards the anomalies' prior.
    """
    return score_sentences(
        result.ensemble,
        objective,
        run.tokens[rows],
        device=device,
        normal=run.tokens[run.normal[::_EVERY]] if penalty else None,
    )


def penalised(setting: str, method: str) -> bool:
    """Return whether a score has the direction penalty: ours has it, the paper's has not."""
    return setting == "ours" and method != "vae"


def figures(scores: SentenceScores, labels: NDArray[np.bool_]) -> dict[str, float]:
    """Return how well scores and their parts find anomalies."""
    return {
        "auroc": float(roc_auc_score(labels, scores.total)),
        "average_precision": float(average_precision_score(labels, scores.total)),
        "auroc_objective": float(roc_auc_score(labels, scores.total - scores.penalty)),
        "auroc_penalty": float(roc_auc_score(labels, scores.penalty)),
        "auroc_reconstruction": float(roc_auc_score(labels, scores.reconstruction)),
        "auroc_divergence": float(roc_auc_score(labels, scores.divergence)),
    }


def tune_words(
    grid: Mapping[str, Sequence[Any]],
    spec: TextSpecification,
    corpus: Corpus,
    *,
    device: str = "auto",
    on_epoch: ProgressCallback | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield figures of choices on rows held out of the training rows, method by method.

    No row of a test is looked at: a tenth of the normal training rows and half of the
    labelled anomalies are held out, and the rest is trained on.

    Parameters
    ----------
    grid
        Values to try of numbers of the objectives (`alpha`, `gamma`, ...), by name.
    spec
        The other options; its first setting is the one that is tuned.
    corpus
        The sentences.
    device, on_epoch
        As in `aloof.vae.train`.
    """
    choices = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    # Of all numbers, only the weight of the divergence means something to the plain VAE.
    plain = list({choice.get("beta_kl"): choice for choice in choices}.values())
    setting = spec.setting[0]
    runs = word_runs(spec, setting, corpus)
    numbers = spec.numbers(setting)
    cases = [
        (run, method, replace(numbers, **choice))
        for method in spec.word_methods
        for choice in (choices if method != "vae" else plain)
        for run in runs
    ]
    where = resolve_device(device)
    trained = train_words(
        numbers,
        [chosen.objective(method) for _, method, chosen in cases],
        [run for run, _, _ in cases],
        [_kept(run.normal, 10) for run, _, _ in cases],
        [_kept(run.anomaly, 2) for run, _, _ in cases],
        device=where,
        compile=spec.compile,
        on_epoch=on_epoch,
    )
    for (run, method, chosen), result in zip(cases, trained, strict=True):
        normal, anomaly = run.normal[::10], run.anomaly[::2]
        rows = np.concatenate([normal, anomaly])
        labels = np.arange(len(rows)) >= len(normal)
        yield {
            "method": method,
            **{name: getattr(chosen, name) for name in grid},
            "direction": run.direction,
            "run": run.number,
            **figures(
                word_scores(
                    result,
                    chosen.objective(method),
                    run,
                    rows,
                    where,
                    penalty=penalised(setting, method),
                ),
                labels,
            ),
        }


def _kept(rows: NDArray[np.int64], every: int) -> NDArray[np.int64]:
    return np.delete(rows, np.s_[::every])
