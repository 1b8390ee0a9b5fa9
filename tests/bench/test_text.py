"""The text experiment on a made-up corpus."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from aloof.bench import read_options, run_study, specify, stored, write_tables
from aloof.bench.text import (
    Corpus,
    TextSpecification,
    TextStudy,
    make_runs,
    make_text,
    read_reviews,
    tune_words,
)
from aloof.bench.text import study as module
from aloof.bench.text.embeddings import embed_corpus
from aloof.bench.text.words import penalised, word_scores
from aloof.bench.workers import Event
from aloof.exceptions import AloofWarning, DatasetError, ExperimentError
from aloof.text import MARKS

pytest.importorskip("sentencex")
pytest.importorskip("tokenizers")

WORDS = ("film", "plot", "scene", "actor", "music", "story", "camera", "script", "cast", "end")
SMALL: dict[str, Any] = {
    "features": "words",
    "methods": ["dp"],
    "runs": 1,
    "gamma_l": 0.1,
    "epochs": 2,
    "anomaly_epochs": 1,
    "annealing_epochs": 1,
    "batch_size": 32,
    "anomaly_batch_size": 4,
    "hidden": 6,
    "latent_dim": 3,
}
EMBEDDED = {
    **SMALL,
    "features": "embeddings",
    "embedder": "hashing",
    "embedding_methods": ["dp", "iforest"],
    "parameters": {"n_members": 1, "max_epochs": 2},
}


def study_of(options: dict[str, Any], corpus: Corpus) -> TextStudy:
    return make_text(specify(TextSpecification, options), corpus)


def write_reviews(folder: Path, n: int = 120) -> tuple[Path, Path]:
    rng = np.random.default_rng(0)
    reviews, vectors = folder / "reviews.csv", folder / "vectors.txt"
    with reviews.open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "sentiment"])
        for row in range(n):
            good = row % 2 == 0
            words = [*rng.choice(WORDS, 5), "great" if good else "awful"]
            text = f"The {' '.join(words)}. Second sentence number {row}!<br />"
            writer.writerow([text, "positive" if good else "negative"])
        writer.writerow(["Too short. But then it goes on for long enough.", "positive"])
        writer.writerow(["word " * 30, "negative"])
        writer.writerow(["", "negative"])
    lines = [f"{word} {' '.join(map(str, rng.normal(size=3).round(3)))}" for word in WORDS]
    vectors.write_text("\n".join(lines) + "\n", encoding="utf8")
    return reviews, vectors


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return read_reviews(*write_reviews(tmp_path))


def test_first_sentences_of_the_right_length_are_read(corpus: Corpus) -> None:
    assert corpus.tokens.shape == (120, 21)
    assert corpus.positive.sum() == 60
    assert set(corpus.words) == {*MARKS, *WORDS, "the", "great", "awful"}
    known = {
        word for word, own in zip(corpus.words, corpus.vectors, strict=True) if own[0] == own[0]
    }
    assert known == set(WORDS)
    first = [corpus.words[number] for number in corpus.tokens[0] if number]
    assert first[0] == "the"
    assert first[-2:] == ["great", "<end>"]
    assert corpus.sentences[0].endswith("great.")


def test_a_run_knows_the_words_of_its_normal_training_rows_only(corpus: Corpus) -> None:
    runs = make_runs(corpus, 2, gamma_l=0.1)
    assert [(run.direction, run.number) for run in runs] == [
        ("positive", 0),
        ("positive", 1),
        ("negative", 0),
        ("negative", 1),
    ]
    numbers = {word: number for number, word in enumerate(corpus.words)}
    for run in runs:
        positive = run.direction == "positive"
        assert (corpus.positive[run.normal] == positive).all()
        assert (corpus.positive[run.anomaly] != positive).all()
        assert len(run.normal) == 42
        assert len(run.anomaly) == 5
        assert len(run.split.test) == 36
        assert run.labels.mean() == 0.5
        rows = [*run.normal, *run.anomaly, *run.split.test]
        assert len(set(rows)) == len(rows)
        hidden = numbers["awful" if positive else "great"]
        assert (corpus.tokens == hidden).any()
        assert not (run.tokens == hidden).any()
    assert not np.array_equal(runs[0].split.test, runs[1].split.test)


def test_rare_words_are_left_out_of_the_vocabulary(corpus: Corpus) -> None:
    fewer = corpus.with_frequent(100)
    assert set(fewer.words) == {*MARKS, "the"}
    assert len(fewer.vectors) == 5
    assert fewer.tokens.max() < 5
    assert ((fewer.tokens == 0) == (corpus.tokens == 0)).all()


def test_it_runs_once_and_makes_a_table(corpus: Corpus, tmp_path: Path) -> None:
    study = study_of(SMALL, corpus)
    records = run_study(study, tmp_path, device="cpu")
    assert [(r["direction"], r["method"], r["gamma_l"]) for r in records] == [
        ("positive", "vae", 0.0),
        ("positive", "dp", 0.1),
        ("negative", "vae", 0.0),
        ("negative", "dp", 0.1),
    ]
    assert not (tmp_path / "words-ours.ckpt").exists()
    events: list[Event] = []
    assert run_study(study, tmp_path, device="cpu", on_event=events.append) == records
    assert [event.kind for event in events] == ["planned"]
    more = run_study(study_of({**SMALL, "methods": ["dp", "mml"]}, corpus), tmp_path)
    assert [r for r in more if r["method"] != "mml"] == records

    others = run_study(study_of(EMBEDDED, corpus), tmp_path, device="cpu", jobs=2)
    assert [(r["method"], r["gamma_l"]) for r in others] == [
        ("dp", 0.1),
        ("dp", 0.1),
        ("iforest", 0.0),
        ("iforest", 0.0),
    ]
    assert run_study(study_of(EMBEDDED, corpus), tmp_path, device="cpu") == others

    both = [*records, *others]
    (grid, _) = study.grids(both)
    assert [row[:3] for row in grid.rows] == [
        ("recurrent VAE of words", "VAE (ours)", "0"),
        ("recurrent VAE of words", "DP-VAE (ours)", "0.1"),
        ("sentence embeddings", "DP-VAE", "0.1"),
        ("sentence embeddings", "iforest", "0"),
        ("published figures of the paper", "VAE", "0"),
        ("published figures of the paper", "MML-VAE", "0.01"),
    ]
    aurocs = [100 * r["auroc"] for r in records if r["method"] == "dp"]
    assert grid.rows[1][-1] == f"{np.mean(aurocs):.1f} ± {np.std(aurocs, ddof=1):.1f}"
    write_tables(study, records, tmp_path, command="aloof bench text")
    assert "60.7 ± 5.4" in (tmp_path / "table.md").read_text()
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 5
    with (tmp_path / "summary.csv").open() as file:
        means = {(row["method"], row["direction"]): row for row in csv.DictReader(file)}
    assert len(means) == 2 * 3
    line = means["dp", "both"]
    assert line["n"] == "2"
    error = np.std(aurocs, ddof=1) / np.sqrt(2)
    assert float(line["auroc_sem"]) == pytest.approx(error, abs=1e-3)
    assert means["dp", "positive"]["auroc_sem"] == "", "of one split"


def test_vectors_are_made_once(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "vectors.npz"
    embeddings = embed_corpus(corpus, "hashing", path)
    written = path.stat().st_mtime_ns
    assert np.array_equal(embed_corpus(corpus, "hashing", path), embeddings)
    assert path.stat().st_mtime_ns == written
    namesake = SimpleNamespace(embed=lambda sentences: np.ones((len(sentences), 2)))
    with monkeypatch.context() as patch:
        patch.setattr("aloof.bench.text.embeddings.load_embedder", lambda _: namesake)
        assert (embed_corpus(corpus, "elsewhere/hashing", path) == 1).all()
    other = replace(corpus, sentences=corpus.sentences[::-1])
    assert np.array_equal(embed_corpus(other, "hashing", path), embeddings[::-1])
    path.write_bytes(path.read_bytes()[:1000])  # as if it had been killed while writing
    assert np.array_equal(embed_corpus(corpus, "hashing", path), embeddings)
    assert list(tmp_path.glob(".*")) == []


def test_a_run_killed_while_scoring_goes_on(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of(SMALL, corpus)
    scored: list[str] = []

    def stopping(*arguments: Any, **options: Any) -> Any:
        if len(scored) == 2:
            raise KeyboardInterrupt
        scored.append(arguments[1].method)
        return word_scores(*arguments, **options)

    monkeypatch.setattr(module, "word_scores", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path, device="cpu")
    assert (tmp_path / "words-ours.ckpt").exists()
    monkeypatch.setattr(module, "word_scores", word_scores)
    events: list[Event] = []
    records = run_study(study, tmp_path, device="cpu", on_event=events.append)
    done = [event.done for event in events if event.kind == "step"]
    assert done == [2, 3], "both phases are there, no epoch is trained again"
    whole = run_study(study, tmp_path / "whole", device="cpu")
    assert [r["auroc"] for r in records] == [r["auroc"] for r in whole]


def test_a_checkpoint_of_other_cases_is_left_behind_with_a_warning(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "word_scores", stopping)
        with pytest.raises(KeyboardInterrupt):
            run_study(study_of(SMALL, corpus), tmp_path, device="cpu")
    fewer = study_of({**SMALL, "directions": "negative"}, corpus)
    with pytest.warns(AloofWarning, match="starting over"):
        records = run_study(fewer, tmp_path, device="cpu")
    assert len(records) == 2
    assert not (tmp_path / "words-ours.ckpt").exists()


def test_embedding_records_depend_on_everything(corpus: Corpus, tmp_path: Path) -> None:
    run_study(study_of({**EMBEDDED, "embedding_methods": "dp"}, corpus), tmp_path, device="cpu")
    assert len(stored(study_of(EMBEDDED, corpus), tmp_path)) == 2
    for change in (
        {"components": 3},
        {"embedder": "other/hashing-2"},
        {"embedder": "elsewhere/hashing"},
        {"gamma_l": 0.2},
        {"parameters": {"n_members": 1, "max_epochs": 3}},
    ):
        assert stored(study_of({**EMBEDDED, **change}, corpus), tmp_path) == [], change
    other = replace(corpus, sentences=corpus.sentences[::-1])
    assert stored(study_of(EMBEDDED, other), tmp_path) == []


def test_the_plain_vae_is_the_method_without_anomalies(corpus: Corpus, tmp_path: Path) -> None:
    """Which anomalies there are makes no difference to it."""
    one = run_study(study_of(SMALL, corpus), tmp_path / "one", device="cpu")
    options = {**SMALL, "gamma_l": 0.2, "methods": "mml"}
    other = run_study(study_of(options, corpus), tmp_path / "other", device="cpu")
    for left, right in zip(one, other, strict=True):
        if left["method"] == "vae":
            assert left["auroc"] == pytest.approx(right["auroc"], abs=1e-3)


def test_tuning_looks_at_training_rows_only(corpus: Corpus) -> None:
    runs = make_runs(corpus, 1, gamma_l=0.1)
    tested = {row for run in runs for row in run.split.test}
    unseen = [
        row for row in tested if all(row not in (*run.normal, *run.anomaly) for run in runs)
    ]
    poisoned = corpus.tokens.copy()
    poisoned[unseen] = corpus.tokens[unseen][:, ::-1]
    grid, spec = {"alpha": [1.0, 4.0]}, specify(TextSpecification, SMALL)
    plain = list(tune_words(grid, spec, corpus, device="cpu"))
    same = list(tune_words(grid, spec, replace(corpus, tokens=poisoned), device="cpu"))
    assert plain == same
    assert [(r["method"], r["alpha"]) for r in plain[::2]] == [
        ("vae", 4.0),
        ("dp", 1.0),
        ("dp", 4.0),
    ]


@pytest.mark.parametrize("name", ["text", "text-small"])
def test_files_are_valid(name: str) -> None:
    path = Path(__file__).parents[2] / "experiments" / f"{name}.toml"
    assert specify(TextSpecification, file=path).runs == read_options(path)["runs"]


def test_the_paper_setting_is_what_the_paper_says() -> None:
    numbers = specify(TextSpecification, {"setting": "paper"}).numbers("paper")
    config, objective = numbers.config(), numbers.objective("mml")
    assert (config.warmup_epochs, config.max_epochs) == (480, 485)
    assert config.context_dropout == (0.0, 0.5)
    assert (objective.method, objective.gamma, objective.repulsion) == ("mml", 1.0, "exp")
    assert (numbers.networks.summary, numbers.networks.conditioning) == ("last", "start")
    assert not penalised("paper", "dp")


def test_settings_stand_side_by_side(corpus: Corpus, tmp_path: Path) -> None:
    """Each has records and rows of its own; one can be run after the other."""
    ours = run_study(study_of(SMALL, corpus), tmp_path, device="cpu")
    study = study_of({**SMALL, "setting": ["ours", "paper"]}, corpus)
    both = run_study(study, tmp_path, device="cpu")
    assert both[: len(ours)] == ours
    assert [record["setting"] for record in both] == ["ours"] * 4 + ["paper"] * 4
    assert [r["config"]["networks"]["summary"] for r in both[3:5]] == ["mean", "last"]
    paper = [r["auroc"] for r in both[4:]]
    assert paper != [r["auroc"] for r in ours]
    alone = run_study(study_of({**SMALL, "setting": "paper"}, corpus), tmp_path / "alone")
    assert [r["auroc"] for r in alone] == paper
    (grid, _) = study.grids(both)
    assert [row[1] for row in grid.rows[:4]] == [
        "VAE (ours)",
        "DP-VAE (ours)",
        "VAE (paper)",
        "DP-VAE (paper)",
    ]
    values = [100 * r["auroc"] for r in both if (r["method"], r["setting"]) == ("dp", "paper")]
    assert grid.rows[3][-1] == f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"
    assert "epochs = 2" in grid.notes[-1], "what is not the paper's is said"
    assert {line["setting"] for line in study.summary(both)} == {"ours", "paper"}


def test_records_from_before_there_were_settings_are_ours(
    corpus: Corpus, tmp_path: Path
) -> None:
    study = study_of({**SMALL, "setting": ["ours", "paper"]}, corpus)
    records = run_study(study_of(SMALL, corpus), tmp_path, device="cpu")
    path = tmp_path / "records.jsonl"
    old = []
    for record in records:
        networks = dict(record["config"]["networks"])
        del networks["summary"], networks["conditioning"]
        config = {**record["config"], "networks": networks}
        old.append({**record, "config": config})
        del old[-1]["setting"]
    path.write_text("".join(json.dumps(record) + "\n" for record in old))
    assert stored(study, tmp_path) == old
    (grid, _) = study.grids(old)
    assert [row[1] for row in grid.rows[:2]] == ["VAE (ours)", "DP-VAE (ours)"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epoch": 1}, "did you mean 'epochs'"),
        ({"methods": ["dpp"]}, "did you mean 'dp'"),
        ({"directions": ["negativ"]}, "did you mean 'negative'"),
        ({"runs": 0}, "runs must be at least 1"),
        ({"gamma_l": 1.5}, "gamma_l must be a share"),
        ({"features": "letters"}, "no kind of features 'letters'"),
        ({"parameters": {"n_membres": 1}}, "did you mean 'n_members'"),
        ({"precision": "float16"}, "precision must be 'float32' or 'bfloat16'"),
        ({"setting": "papper"}, "no setting 'papper'; did you mean 'paper'"),
        ({"learning_rate": -1}, "learning_rate must be more than 0; got -1"),
        ({"gamma": -0.5}, "gamma must be at least 0"),
        ({"beta_kl": float("nan")}, "beta_kl must be"),
        ({"word_dropout": 1.0}, "word_dropout must be a share"),
        ({"summary": "first"}, "summary must be 'mean' or 'last'"),
        ({"setting": "paper", "features": "embeddings"}, "has no embeddings"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        specify(TextSpecification, options)


def test_files_that_are_no_reviews(tmp_path: Path) -> None:
    _, vectors = write_reviews(tmp_path)
    (tmp_path / "bad.csv").write_text("text,label\na,b\n")
    with pytest.raises(DatasetError, match="columns `review` and `sentiment`"):
        read_reviews(tmp_path / "bad.csv", vectors)
