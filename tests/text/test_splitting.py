from __future__ import annotations

import sys

import pytest

from aloof.exceptions import MissingExtraError
from aloof.text import first_sentence, split_sentences, split_words
from aloof.text.splitting import _word_splitter

pytest.importorskip("sentencex")
pytest.importorskip("tokenizers")


def test_sentences_end_where_they_do() -> None:
    document = "Mr. Smith paid $3.50 for it. Was it worth it? <br /><br />No!"
    assert split_sentences(document) == [
        "Mr. Smith paid $3.50 for it.",
        "Was it worth it?",
        "No!",
    ]
    assert first_sentence(document) == "Mr. Smith paid $3.50 for it."


@pytest.mark.parametrize("document", ["", "   ", "\n\n", "<br />"])
def test_nothing_has_no_sentence(document: str) -> None:
    assert split_sentences(document) == []
    assert first_sentence(document) == ""


def test_words_are_what_has_letters_or_digits() -> None:
    sentences = [
        "It's the WORST film -- ever!!!",
        "Don\N{RIGHT SINGLE QUOTATION MARK}t.",
        "🙂 🙂",
        "Ein Gr\u00f6\u00dfenwahn, c'est l'\u00e9t\u00e9",
        "\u5f71\u7247 \u0444\u0438\u043b\u044c\u043c",
        "",
    ]
    assert split_words(sentences) == [
        ["it's", "the", "worst", "film", "ever"],
        ["don't"],
        [],
        ["ein", "gr\u00f6\u00dfenwahn", "c'est", "l'\u00e9t\u00e9"],
        ["\u5f71\u7247", "\u0444\u0438\u043b\u044c\u043c"],
        [],
    ]


def test_ten_thousand_words_are_ten_thousand_words() -> None:
    assert len(split_words(["word " * 10_000])[0]) == 10_000


def test_without_the_extra_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencex", None)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"aloof\[text\]"):
        split_sentences("A. B.")
    _word_splitter.cache_clear()
    with pytest.raises(MissingExtraError, match=r"aloof\[text\]"):
        split_words(["a"])
