"""A few hundred sentences in which the anomaly is a pattern of words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from aloof.networks import END
from aloof.text import SentenceNetworks, SentenceScores, score_sentences, train_sentences
from aloof.vae import FitResult, Objective, TrainingConfig, VAEProblem

CPU = torch.device("cpu")
N_WORDS, LENGTH, N_NORMAL, N_ANOMALY = 24, 9, 300, 20
METHODS = {
    "dp": Objective("dp", alpha=4.0, beta_kl=0.1, likelihood="categorical"),
    "mml": Objective(
        "mml",
        beta_kl=0.1,
        beta_cubo=0.1,
        repulsion="softplus",
        margin=8.0,
        likelihood="categorical",
    ),
}


def sentences(n: int, *, odd: bool, seed: int) -> NDArray[np.int64]:
    """Sentences of 3 to 8 words at random; in odd ones word 5 follows word 4 somewhere."""
    rng = np.random.default_rng(seed)
    tokens = np.zeros((n, LENGTH), np.int64)
    for row in tokens:
        size = rng.integers(3, LENGTH)
        row[:size] = rng.integers(4, N_WORDS, size)
        row[:size][row[:size] == 5] = 6
        if odd:
            at = rng.integers(0, size - 1)
            row[at : at + 2] = 4, 5
        elif rng.random() < 0.3:
            row[rng.integers(0, size)] = 5  # the word alone is nothing special
            row[:size][np.flatnonzero((row[:-1] == 4) & (row[1:] == 5))] = 7
        row[size] = END
    return tokens


@pytest.fixture(scope="module")
def trained() -> dict[str, FitResult]:
    tokens = np.concatenate(
        [sentences(N_NORMAL, odd=False, seed=0), sentences(N_ANOMALY, odd=True, seed=1)]
    )
    vectors = np.random.default_rng(2).normal(size=(N_WORDS, 8))
    vectors[:4] = np.nan
    problems = [
        VAEProblem(
            normal=np.arange(N_NORMAL),
            anomaly=np.arange(N_NORMAL, N_NORMAL + N_ANOMALY),
            seeds=[0, 1],
            objective=objective,
        )
        for objective in METHODS.values()
    ]
    config = TrainingConfig(
        max_epochs=25,
        warmup_epochs=5,
        annealing_epochs=3,
        batch_size=64,
        learning_rate=0.01,
        context_dropout=(0.0, 0.5),
    )
    results = train_sentences(
        tokens,
        vectors,
        problems,
        config,
        networks=SentenceNetworks(hidden=16, latent_dim=4),
        device=CPU,
    )
    return dict(zip(METHODS, results, strict=True))


def scores(
    trained: dict[str, FitResult], method: str, tokens: NDArray[np.int64]
) -> SentenceScores:
    return score_sentences(trained[method].ensemble, METHODS[method], tokens, device=CPU)


@pytest.mark.parametrize("method", METHODS)
def test_the_pattern_is_learned(trained: dict[str, FitResult], method: str) -> None:
    normal, odd = sentences(150, odd=False, seed=3), sentences(150, odd=True, seed=4)
    found = scores(trained, method, np.concatenate([normal, odd]))
    assert roc_auc_score(np.arange(300) >= 150, found.total) > 0.8
    np.testing.assert_allclose(
        found.total, found.reconstruction + 0.1 * found.divergence, rtol=1e-6
    )
    before, after = trained[method].history["reconstruction"][[0, -1]].mean(1)
    assert after < before < np.log(N_WORDS) + 0.5


@pytest.mark.parametrize("method", METHODS)
def test_a_sentence_has_its_score_in_any_company(
    trained: dict[str, FitResult], method: str
) -> None:
    tokens = sentences(70, odd=False, seed=5)
    together = scores(trained, method, tokens)
    longer = np.concatenate([tokens, np.zeros((70, 13), np.int64)], 1)
    longer[0, :20] = 7
    filled = scores(trained, method, longer)
    for row in (1, 30, 69):
        short = tokens[row : row + 1, : np.count_nonzero(tokens[row])]
        alone = scores(trained, method, short)
        assert alone.total[0] == together.total[row] == filled.total[row]


def test_codes_that_lie_towards_the_anomalies_are_charged(
    trained: dict[str, FitResult],
) -> None:
    normal, odd = sentences(150, odd=False, seed=6), sentences(150, odd=True, seed=7)
    both = np.concatenate([normal, odd])
    plain = scores(trained, "dp", both)
    charged = score_sentences(
        trained["dp"].ensemble,
        METHODS["dp"],
        both,
        device=CPU,
        normal=sentences(200, odd=False, seed=8),
    )
    assert (plain.penalty == 0).all()
    assert (charged.penalty >= 0).all()
    np.testing.assert_allclose(charged.total - charged.penalty, plain.total, rtol=1e-5)
    assert charged.penalty[150:].mean() > 2 * charged.penalty[:150].mean()
