"""Documents into sentences, and sentences into words.

Sentences are found by sentencex, Wikimedia's splitter for many languages; words by the
`tokenizers` library, which sentence-transformers brings along. Both are compiled, small and
need no model to be downloaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from aloof.exceptions import MissingExtraError

__all__ = ["first_sentence", "split_sentences", "split_words"]

# Letters and digits with marks, and apostrophes inside: don't, l'amour, 1980s.
_WORD = r"[\p{L}\p{M}\p{N}]+(?:'[\p{L}\p{M}\p{N}]+)*"
_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"


def split_sentences(document: str, language: str = "en") -> list[str]:
    """Return the sentences of a document, without the space around them.

    Examples
    --------
    >>> split_sentences("Mr. Smith is back.<br />He is not amused!")
    ['Mr. Smith is back.', 'He is not amused!']
    """
    try:
        from sentencex import segment
    except ImportError:
        raise MissingExtraError("sentencex", "text", "Splitting text into sentences") from None
    parts = (part.strip() for part in segment(language, _without_breaks(document)))
    return [part for part in parts if part]


def first_sentence(document: str, language: str = "en") -> str:
    """Return the first sentence of a document; an empty one has an empty one."""
    sentences = split_sentences(document, language)
    return sentences[0] if sentences else ""


def split_words(sentences: Iterable[str]) -> list[list[str]]:
    """Return the words of each sentence, in lower case; signs between words are left out.

    Examples
    --------
    >>> split_words(["I don't know: 10/10!", "🙂"])
    [['i', "don't", 'know', '10', '10'], []]
    """
    normalizer, splitter = _word_splitter()
    return [
        [word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(sentence))]
        for sentence in sentences
    ]


@cache
def _word_splitter() -> tuple[Any, Any]:
    try:
        from tokenizers import Regex, normalizers, pre_tokenizers
    except ImportError:
        raise MissingExtraError("tokenizers", "text", "Splitting text into words") from None
    normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace(_APOSTROPHE, "'")]
    )
    return normalizer, pre_tokenizers.Split(Regex(_WORD), "removed", invert=True)


def _without_breaks(document: str) -> str:
    return document.replace("<br />", "\n").replace("<br>", "\n")
