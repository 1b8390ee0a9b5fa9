"""The text experiment with sentence embeddings as features: our detectors, and others.

The splits are those of the recurrent VAE, so that both go into one table. All systems see the
same features: the principal components of the embeddings of normal training rows, and the rest.
Ours are trained as on a table of text alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.estimators import fit_many
from aloof.exceptions import ExperimentError
from aloof.experiments.corpus import Corpus, TextRun, make_runs
from aloof.experiments.methods import OURS, peers, resolve_methods
from aloof.experiments.protocol import standardise
from aloof.experiments.records import append_lines, read_records
from aloof.text import Components, load_embedder, schedule
from aloof.training import ProgressCallback

__all__ = ["EMBEDDING_METHODS", "embed_corpus", "run_embeddings"]

EMBEDDING_METHODS = (
    "vae",
    "mml",
    "dp",
    "mml-dp",
    "deep-sad",
    "iforest",
    "classifier",
)


def embed_corpus(corpus: Corpus, embedder: str, path: Path) -> NDArray[np.float32]:
    """Return a vector for each sentence; they are made once and kept in an ``.npz`` file."""
    if path.exists():
        with np.load(path) as file:
            vectors = file["embeddings"]
        if len(vectors) != len(corpus.tokens):
            raise ExperimentError(
                f"{path} has {len(vectors):,} vectors for {len(corpus.tokens):,} sentences. "
                "Remove it, and they are made again."
            )
        return np.asarray(vectors, np.float32)
    vectors = load_embedder(embedder).embed(corpus.sentences).astype(np.float16)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, embeddings=vectors)
    return vectors.astype(np.float32)


def run_embeddings(
    corpus: Corpus,
    embeddings: NDArray[np.floating],
    records: Path,
    *,
    methods: Sequence[str] = EMBEDDING_METHODS,
    embedder: str = "",
    n_runs: int = 5,
    gamma_l: float = 0.01,
    jobs: int = 1,
    on_epoch: ProgressCallback | None = None,
    **parameters: Any,
) -> list[dict[str, Any]]:
    """Fit and test every method in every run; what the file of records has is not run again.

    Parameters
    ----------
    corpus
        The sentences.
    embeddings
        A vector for each of them.
    records
        A file of JSON lines, one for each method and run.
    methods
        By name: ours, or any peer. The plain VAE and Isolation Forest look at no label.
    embedder
        The name of what made the vectors, for the records.
    n_runs, gamma_l
        Splits, and the share of labelled anomalies.
    jobs
        Processes that fit other systems.
    on_epoch
        Called after each epoch of our methods.
    **parameters
        Of our detectors, such as `device`.

    Returns
    -------
    The records, method by method.
    """
    runs = make_runs(corpus, n_runs, gamma_l=gamma_l)
    identity = {"experiment": f"components-{embedder}-{gamma_l:g}"}
    found = {_key(record): record for record in read_records(records, check=_key)}
    for method in resolve_methods(methods):
        missing = [
            run
            for run in runs
            if (identity["experiment"], run.direction, run.number, method) not in found
        ]
        if method in OURS:
            scores = _ours(method, missing, embeddings, on_epoch, parameters)
        else:
            scores = Parallel(n_jobs=jobs)(
                delayed(_peer)(method, run.number, *_rows(run, embeddings)) for run in missing
            )
        for run, own in zip(missing, scores, strict=True):
            blind = method in ("vae", "iforest")
            record = {
                **identity,
                "features": "embeddings",
                "direction": run.direction,
                "run": run.number,
                "method": method,
                "gamma_l": 0.0 if blind else gamma_l,
                "n_normal": len(run.normal),
                "n_anomaly": 0 if blind else len(run.anomaly),
                "n_test": len(run.split.test),
                "auroc": float(roc_auc_score(run.labels, own)),
                "average_precision": float(average_precision_score(run.labels, own)),
            }
            append_lines(records, [record])
            found[_key(record)] = record
    chosen = resolve_methods(methods)
    return [
        record
        for method in chosen
        for record in found.values()
        if record["experiment"] == identity["experiment"]
        and record["method"] == method
        and record["run"] < n_runs
    ]


def _ours(
    method: str,
    runs: Sequence[TextRun],
    embeddings: NDArray[np.floating],
    on_epoch: ProgressCallback | None,
    parameters: Mapping[str, Any],
) -> list[NDArray[np.float64]]:
    if not runs:
        return []
    detectors = [
        OURS[method](random_state=run.number, **_own(method, run, parameters)) for run in runs
    ]
    data = [_rows(run, embeddings) for run in runs]
    fit_many(detectors, [(X, y) for X, y, _ in data], on_epoch=on_epoch)
    return [
        detector.anomaly_score(test)
        for detector, (_, _, test) in zip(detectors, data, strict=True)
    ]


def _own(method: str, run: TextRun, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of one of our detectors: those of a table of text alone."""
    epochs = parameters.get("max_epochs")
    long = {} if method == "vae" else schedule(len(run.normal), max_epochs=epochs)
    return {"standardize": False, **long, **parameters}


def _peer(
    method: str,
    seed: int,
    X: NDArray[np.floating],
    y: NDArray[np.int64],
    test: NDArray[np.floating],
) -> NDArray[np.float64]:
    train, scaled = standardise(X, test)
    scores: NDArray[np.float64] = (
        peers()[method](random_state=seed).fit(train, y).anomaly_score(scaled)
    )
    return scores


def _rows(
    run: TextRun, embeddings: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.int64], NDArray[np.floating]]:
    train = np.concatenate([run.normal, run.anomaly])
    y = (np.arange(len(train)) >= len(run.normal)).astype(np.int64)
    components = Components.fit(embeddings[run.normal])
    return components(embeddings[train]), y, components(embeddings[run.split.test])


def _key(record: Mapping[str, Any]) -> tuple[str, str, int, str]:
    return record["experiment"], record["direction"], record["run"], record["method"]
