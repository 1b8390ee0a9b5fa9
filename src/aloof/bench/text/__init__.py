"""Film reviews of the other sentiment, by their first sentence."""

from aloof.bench.text.corpus import Corpus, make_runs, read_reviews
from aloof.bench.text.specification import TextSpecification
from aloof.bench.text.study import TextCase, TextStudy, make_text
from aloof.bench.text.words import tune_words

__all__ = [
    "Corpus",
    "TextCase",
    "TextSpecification",
    "TextStudy",
    "make_runs",
    "make_text",
    "read_reviews",
    "tune_words",
]
