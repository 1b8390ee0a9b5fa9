"""Sentence embeddings as features: our detectors, and others, on the splits of the words.

All systems see the same features: the principal components of the embeddings of normal training
rows, and the rest. Ours are trained as on a table of text alone.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from aloof.bench.methods import OURS, make_peer
from aloof.bench.splits import standardise
from aloof.bench.text.corpus import Corpus, TextRun
from aloof.bench.text.specification import TextSpecification
from aloof.estimators import fit_many
from aloof.exceptions import ExperimentError
from aloof.io import write_file
from aloof.text import Components, load_embedder, schedule
from aloof.training import ProgressCallback

__all__ = ["detector", "embed_corpus", "our_scores", "peer_scores", "rows_of"]

_Scores = NDArray[np.float64]
_Rows = tuple[NDArray[np.floating], NDArray[np.int64], NDArray[np.floating]]


def embed_corpus(corpus: Corpus, embedder: str, path: Path) -> NDArray[np.float32]:
    """Return a vector for each sentence; they are made once and kept in an ``.npz`` file.

    A file of other sentences or of another embedder is made again.
    """
    owner = {"embedder": embedder, "data_sha256": corpus.sha256}
    kept = _kept(path, owner)
    if kept is None:
        kept = load_embedder(embedder).embed(corpus.sentences).astype(np.float16)
        content = io.BytesIO()
        np.savez(content, embeddings=kept, **owner)  # type: ignore[arg-type]
        write_file(path, content.getbuffer(), ExperimentError, parents=True)
    return kept.astype(np.float32)


def _kept(path: Path, owner: Mapping[str, str]) -> NDArray[np.float16] | None:
    """Return the vectors of a file, if it is whole and says that they are the owner's."""
    try:
        with path.open("rb") as opened, np.load(opened) as file:
            own = all(name in file and str(file[name]) == owner[name] for name in owner)
            return file["embeddings"] if own else None
    except (OSError, ValueError, KeyError, BadZipFile):
        return None


def rows_of(run: TextRun, embeddings: NDArray[np.floating], components: int) -> _Rows:
    """Return what is trained on, its labels, and what is tested, as components."""
    train = np.concatenate([run.normal, run.anomaly])
    y = (np.arange(len(train)) >= len(run.normal)).astype(np.int64)
    found = Components.fit(embeddings[run.normal], most=components)
    return found(embeddings[train]), y, found(embeddings[run.split.test])


def detector(
    spec: TextSpecification, method: str, run: TextRun, *, device: str = "auto"
) -> Any:
    """Return an unfitted detector: a peer, or ours as for a table of text alone.

    Parameters
    ----------
    spec, method, run
        Which.
    device
        Where to train networks.
    """
    if method not in OURS:
        return make_peer(method, seed=run.number, device=device)
    epochs = spec.parameters.get("max_epochs")
    long = {} if method == "vae" else schedule(len(run.normal), max_epochs=epochs)
    chosen = {"standardize": False, "device": device, **long, **spec.parameters}
    return OURS[method](random_state=run.number, **chosen)


def our_scores(
    detectors: Sequence[Any], rows: Sequence[_Rows], on_epoch: ProgressCallback | None
) -> list[_Scores]:
    """Fit detectors of ours as one stack, and return the scores of their test rows."""
    fit_many(detectors, [(X, y) for X, y, _ in rows], on_epoch=on_epoch)
    return [own.anomaly_score(test) for own, (_, _, test) in zip(detectors, rows, strict=True)]


def peer_scores(detector: Any, rows: _Rows) -> _Scores:
    """Fit a peer on standardised rows, and return the scores of its test rows."""
    X, y, test = rows
    train, scaled = standardise(X, test)
    scores: _Scores = detector.fit(train, y).anomaly_score(scaled)
    return scores
