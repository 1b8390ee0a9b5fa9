"""The text experiment: sentences of the other sentiment, found by a recurrent VAE.

The VAE first learns normal sentences for a long time, then a few epochs with labelled
anomalies. Every method begins from the same networks, so the long part is trained once.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.exceptions import ExperimentError
from aloof.experiments.corpus import DIRECTIONS, Corpus, TextRun, make_runs
from aloof.experiments.names import did_you_mean
from aloof.experiments.records import append_lines, read_records
from aloof.text import SentenceNetworks, SentenceScores, score_sentences, train_sentences
from aloof.training import Precision, ProgressCallback, Stream, derive, resolve_device
from aloof.vae import METHODS, FitResult, Method, Objective, TrainingConfig, VAEProblem

__all__ = ["TextExperiment", "make_text_experiment", "run_text", "tune_text"]

_USUAL = 5  # every so many normal training rows, to measure how codes lean


@dataclass(frozen=True)
class TextExperiment:
    """What to train.

    Attributes
    ----------
    directions
        The sentiments that are normal, one after the other.
    methods
        Those that learn from labelled anomalies; the plain VAE is always there.
    gamma_l
        Share of labelled anomalies.
    runs
        Splits.
    min_count
        How often a word must be in the normal training rows to be known.
    epochs, anomaly_epochs
        On normal sentences alone, and then with labelled anomalies.
    annealing_epochs, batch_size, anomaly_batch_size, learning_rate
        Of the training.
    word_dropout, encoder_dropout
        Share of the words that the decoder, and the encoder, miss in training.
    members
        Networks of a run; its score is their mean.
    hidden, latent_dim
        Of the networks.
    beta_kl, alpha, gamma, beta_cubo, margin
        Of the objectives; `margin` is that of MML-VAE's softplus.
    precision, compile
        See `TrainingConfig`.
    """

    directions: tuple[str, ...] = DIRECTIONS
    methods: tuple[str, ...] = ("mml", "dp", "mml-dp")
    gamma_l: float = 0.01
    runs: int = 5
    min_count: int = 2
    epochs: int = 120
    anomaly_epochs: int = 5
    annealing_epochs: int = 20
    word_dropout: float = 0.5
    encoder_dropout: float = 0.4
    members: int = 1
    batch_size: int = 128
    anomaly_batch_size: int = 32
    learning_rate: float = 3e-3
    hidden: int = 256
    latent_dim: int = 32
    beta_kl: float = 0.05
    alpha: float = 5.0
    gamma: float = 1.0
    beta_cubo: float = 0.05
    margin: float = 12.0
    precision: Precision = "float32"
    compile: bool = False

    @property
    def config(self) -> TrainingConfig:
        """The schedule."""
        return TrainingConfig(
            max_epochs=self.epochs + self.anomaly_epochs,
            warmup_epochs=self.epochs,
            annealing_epochs=self.annealing_epochs,
            batch_size=self.batch_size,
            anomaly_batch_size=self.anomaly_batch_size,
            learning_rate=self.learning_rate,
            context_dropout=(self.encoder_dropout, self.word_dropout),
            precision=self.precision,
            compile=self.compile,
        )

    @property
    def networks(self) -> SentenceNetworks:
        """Their sizes."""
        return SentenceNetworks(self.hidden, self.latent_dim)

    @property
    def digest(self) -> str:
        """What a result depends on, but for how many there are."""
        left_out = ("directions", "methods", "runs", "compile")
        options = {k: v for k, v in asdict(self).items() if k not in left_out}
        return hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:16]

    def objective(self, method: str) -> Objective:
        """Return what a method minimises.

        The plain VAE is DP-VAE with anomalies of no weight: it then has a share in the
        training of normal sentences.
        """
        kind: Method = "dp" if method == "vae" else method  # type: ignore[assignment]
        return Objective(
            kind,
            beta_kl=self.beta_kl,
            alpha=self.alpha,
            gamma=0.0 if method == "vae" else self.gamma,
            beta_cubo=self.beta_cubo,
            repulsion="softplus",
            margin=self.margin,
            likelihood="categorical",
        )


def make_text_experiment(options: Mapping[str, Any]) -> TextExperiment:
    """Check options, and fill in the rest.

    Examples
    --------
    >>> make_text_experiment({"epoch": 3})
    Traceback (most recent call last):
    aloof.exceptions.ExperimentError: There is no option 'epoch'; did you mean 'epochs'?...
    """
    known = [field.name for field in fields(TextExperiment)]
    for name in options:
        if name not in known:
            raise ExperimentError(f"There is no option {name!r}{did_you_mean(name, known)}")
    given: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in options.items()
    }
    experiment = TextExperiment(**given)
    for method in experiment.methods:
        if method not in METHODS:
            raise ExperimentError(
                f"There is no method {method!r}{did_you_mean(method, METHODS)}"
            )
    for direction in experiment.directions:
        if direction not in DIRECTIONS:
            raise ExperimentError(
                f"There is no direction {direction!r}{did_you_mean(direction, DIRECTIONS)}"
            )
    for name in ("runs", "epochs", "anomaly_epochs", "hidden", "latent_dim", "batch_size"):
        if getattr(experiment, name) < 1:
            raise ExperimentError(
                f"{name} must be at least 1; got {getattr(experiment, name)}."
            )
    if not 0 < experiment.gamma_l < 1:
        raise ExperimentError(
            f"gamma_l must be a share between 0 and 1; got {experiment.gamma_l}."
        )
    return experiment


def run_text(
    experiment: TextExperiment,
    corpus: Corpus,
    records: Path,
    *,
    device: str = "auto",
    checkpoint: Path | None = None,
    on_epoch: ProgressCallback | None = None,
) -> list[dict[str, Any]]:
    """Train and test every method in every run; what the file of records has is not run again.

    Parameters
    ----------
    experiment
        What to train.
    corpus
        The sentences.
    records
        A file of JSON lines, one for each method and run.
    device, checkpoint, on_epoch
        As in `aloof.vae.train`.

    Returns
    -------
    The records of this experiment.
    """
    found = {_key(record): record for record in read_records(records, check=_key)}
    methods = ("vae", *(method for method in experiment.methods if method != "vae"))
    runs = _runs(experiment, corpus)
    cases = [(run, method) for run in runs for method in methods]
    missing = [case for case in cases if _identity(experiment, *case) not in found]
    started = time.perf_counter()
    trained = _train(
        [experiment.objective(method) for _, method in missing],
        [run for run, _ in missing],
        [run.normal for run, _ in missing],
        [run.anomaly for run, _ in missing],
        experiment,
        device=device,
        checkpoint=checkpoint,
        on_epoch=on_epoch,
    )
    seconds = time.perf_counter() - started
    for (run, method), result in zip(missing, trained, strict=True):
        scores = _scores(result, experiment, method, run, run.split.test, device)
        record = {
            "experiment": experiment.digest,
            "features": "words",
            "direction": run.direction,
            "run": run.number,
            "method": method,
            "gamma_l": 0.0 if method == "vae" else experiment.gamma_l,
            "n_normal": len(run.normal),
            "n_anomaly": 0 if method == "vae" else len(run.anomaly),
            "n_test": len(run.split.test),
            **_figures(scores, run.labels),
            "seconds_of_all": seconds,
        }
        append_lines(records, [record])
        found[_identity(experiment, run, method)] = record
    return [found[_identity(experiment, run, method)] for run, method in cases]


def tune_text(
    grid: Mapping[str, Sequence[Any]],
    experiment: TextExperiment,
    corpus: Corpus,
    *,
    device: str = "auto",
    on_epoch: ProgressCallback | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield figures of settings on rows held out of the training rows, method by method.

    No row of a test is looked at: a tenth of the normal training rows and half of the
    labelled anomalies are held out, and the rest is trained on.

    Parameters
    ----------
    grid
        Values to try of numbers of the objectives (`alpha`, `gamma`, ...), by name.
    experiment
        The other options.
    corpus, device, on_epoch
        As in `run_text`.
    """
    settings = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    # Of all numbers, only the weight of the divergence means something to the plain VAE.
    plain = list({setting.get("beta_kl"): setting for setting in settings}.values())
    runs = _runs(experiment, corpus)
    methods = ("vae", *(method for method in experiment.methods if method != "vae"))
    cases = [
        (run, method, replace(experiment, **setting))
        for method in methods
        for setting in (settings if method != "vae" else plain)
        for run in runs
    ]
    trained = _train(
        [chosen.objective(method) for _, method, chosen in cases],
        [run for run, _, _ in cases],
        [_kept(run.normal, 10) for run, _, _ in cases],
        [_kept(run.anomaly, 2) for run, _, _ in cases],
        experiment,
        device=device,
        on_epoch=on_epoch,
    )
    for (run, method, chosen), result in zip(cases, trained, strict=True):
        normal, anomaly = _held_out(run.normal, 10), _held_out(run.anomaly, 2)
        rows = np.concatenate([normal, anomaly])
        labels = np.arange(len(rows)) >= len(normal)
        yield {
            "method": method,
            **{name: getattr(chosen, name) for name in grid},
            "direction": run.direction,
            "run": run.number,
            **_figures(_scores(result, chosen, method, run, rows, device), labels),
        }


def _runs(experiment: TextExperiment, corpus: Corpus) -> list[TextRun]:
    runs = make_runs(
        corpus.with_frequent(experiment.min_count),  # what no run can know
        experiment.runs,
        gamma_l=experiment.gamma_l,
        min_count=experiment.min_count,
    )
    return [run for run in runs if run.direction in experiment.directions]


def _train(
    objectives: Sequence[Objective],
    runs: Sequence[TextRun],
    normal: Sequence[NDArray[np.int64]],
    anomaly: Sequence[NDArray[np.int64]],
    experiment: TextExperiment,
    *,
    device: str,
    checkpoint: Path | None = None,
    on_epoch: ProgressCallback | None = None,
) -> list[FitResult]:
    """Train one network for each objective and run, all as rows of one array.

    Runs know different words, so each has a copy of the sentences in its own.
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
                for k in range(experiment.members)
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
        experiment.config,
        networks=experiment.networks,
        device=resolve_device(device),
        checkpoint=checkpoint,
        on_epoch=on_epoch,
    )


def _scores(
    result: FitResult,
    experiment: TextExperiment,
    method: str,
    run: TextRun,
    rows: NDArray[np.int64],
    device: str,
) -> SentenceScores:
    objective = experiment.objective(method)
    place = resolve_device(device)
    return score_sentences(
        result.ensemble,
        objective,
        run.tokens[rows],
        device=place,
        normal=run.tokens[run.normal[::_USUAL]] if method != "vae" else None,
    )


def _figures(scores: SentenceScores, labels: NDArray[np.bool_]) -> dict[str, float]:
    return {
        "auroc": float(roc_auc_score(labels, scores.total)),
        "average_precision": float(average_precision_score(labels, scores.total)),
        "auroc_objective": float(roc_auc_score(labels, scores.total - scores.penalty)),
        "auroc_penalty": float(roc_auc_score(labels, scores.penalty)),
        "auroc_reconstruction": float(roc_auc_score(labels, scores.reconstruction)),
        "auroc_divergence": float(roc_auc_score(labels, scores.divergence)),
    }


def _held_out(rows: NDArray[np.int64], every: int) -> NDArray[np.int64]:
    return rows[::every]


def _kept(rows: NDArray[np.int64], every: int) -> NDArray[np.int64]:
    return np.delete(rows, np.s_[::every])


def _identity(
    experiment: TextExperiment, run: TextRun, method: str
) -> tuple[str, str, int, str]:
    return experiment.digest, run.direction, run.number, method


def _key(record: Mapping[str, Any]) -> tuple[str, str, int, str]:
    return record["experiment"], record["direction"], record["run"], record["method"]
