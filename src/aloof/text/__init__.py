"""Text: documents into sentences, words and numbers, and a VAE of sentences.

Needs the extra ``text`` where text is split or embedded; the VAE itself does not.
"""

from aloof.text.components import Components
from aloof.text.embedding import DEFAULT_EMBEDDER, HASHING, Embedder, load_embedder
from aloof.text.schedule import schedule
from aloof.text.sentence_vae import (
    SentenceNetworks,
    SentenceScores,
    score_sentences,
    train_sentences,
)
from aloof.text.splitting import first_sentence, split_sentences, split_words
from aloof.text.vocabulary import MARKS, number_words, read_word_vectors

__all__ = [
    "DEFAULT_EMBEDDER",
    "HASHING",
    "MARKS",
    "Components",
    "Embedder",
    "SentenceNetworks",
    "SentenceScores",
    "first_sentence",
    "load_embedder",
    "number_words",
    "read_word_vectors",
    "schedule",
    "score_sentences",
    "split_sentences",
    "split_words",
    "train_sentences",
]
