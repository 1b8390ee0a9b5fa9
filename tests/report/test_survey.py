"""One pass over a stream finds what all rows in memory say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.calibration import p_values
from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.models.table import TableModel
from aloof.models.table.survey import survey
from aloof.report.curves import curves_from_counts
from aloof.report.findings import _bin, _middle


def in_parts(table: pa.Table, rows: int) -> list[pa.RecordBatch]:
    return table.combine_chunks().to_batches(max_chunksize=rows)


@pytest.mark.parametrize(
    "rule", [{"share": 0.02}, {"budget": "30/1000"}, {"fdr": 0.2}, {"value": 2.0}]
)
def test_counts_are_those_of_all_rows(
    model: TableModel, new: pa.Table, rule: dict[str, float]
) -> None:
    model.set_threshold(**rule)  # type: ignore[arg-type]
    scores, labels = model.anomaly_score(new), model.labels(new)
    flagged = model.decide(scores)
    found = survey(model, in_parts(new, 100), top=10)
    assert found.n() == len(scores)
    assert flagged.any()
    for label in (ANOMALY, NORMAL, UNLABELLED):
        assert found.n(label) == (labels == label).sum()
        assert found.n_flagged[label] == (flagged & (labels == label)).sum()
    np.testing.assert_array_equal(scores > found.level, flagged)
    calibration = model.detector.calibration_scores_
    assert calibration is not None
    p = p_values(calibration, scores[labels == NORMAL])
    at_most = [(p <= k / (len(calibration) + 1) + 1e-12).sum() for k in (1, 20, 200)]
    assert [found.p_counts[NORMAL][:k].sum() for k in (1, 20, 200)] == at_most


def test_a_false_discovery_rate_that_nothing_meets(model: TableModel, new: pa.Table) -> None:
    model.set_threshold(fdr=0.5)
    lowest = np.argsort(model.anomaly_score(new))[:3]
    found = survey(model, in_parts(new.take(lowest), 2), top=3)
    assert found.level == np.inf
    assert found.n_flagged_of() == 0


def test_highest_rows_are_the_highest_however_the_stream_is_cut(
    model: TableModel, new: pa.Table
) -> None:
    scores = model.anomaly_score(new)
    order = np.argsort(-scores, kind="stable")[:200]
    for rows in (7, 500, 5000):
        highest = survey(model, in_parts(new, rows), top=5).highest
        np.testing.assert_array_equal(highest["places"], order)
        np.testing.assert_array_equal(highest["scores"], scores[order])
        assert highest.table["order"].to_pylist() == new["order"].take(order).to_pylist()


def test_equal_scores_keep_the_earlier_rows(model: TableModel, new: pa.Table) -> None:
    same = pa.concat_tables([new.slice(0, 1)] * 900)
    highest = survey(model, in_parts(same, 50), top=5).highest
    np.testing.assert_array_equal(highest["places"], np.arange(200))


def test_samples_are_rows_of_the_right_kind_and_spread_out(
    model: TableModel, new: pa.Table
) -> None:
    many = pa.concat_tables([new] * 4)
    found = survey(model, in_parts(many, 300), top=5)
    assert len(found.normal) == 1500
    assert len(np.unique(found.normal["places"])) == 1500
    assert (found.normal["labels"] != ANOMALY).all()
    assert (found.anomalies["labels"] == ANOMALY).all()
    assert abs(found.normal["places"].mean() / len(many) - 0.5) < 0.03
    again = survey(model, in_parts(many, 300), top=5)
    np.testing.assert_array_equal(again.normal["places"], found.normal["places"])
    other = survey(model, in_parts(many, 300), top=5, seed=1)
    assert (other.normal["places"] != found.normal["places"]).any()


def test_curves_from_counts_are_those_of_all_scores(model: TableModel, new: pa.Table) -> None:
    scores, labels = model.anomaly_score(new), model.labels(new)
    known = labels != UNLABELLED
    found = survey(model, in_parts(new, 400), top=5)
    curves = curves_from_counts(found.score_counts[NORMAL], found.score_counts[ANOMALY])
    truth = labels[known] == ANOMALY
    assert curves.auroc == pytest.approx(roc_auc_score(truth, scores[known]), abs=1e-4)
    assert curves.average_precision == pytest.approx(
        average_precision_score(truth, scores[known]), abs=1e-3
    )


def test_bins_keep_the_order_and_the_value() -> None:
    rng = np.random.default_rng(0)
    scores = np.sort(np.float32(rng.normal(size=1000) * 10.0 ** rng.integers(-6, 7, 1000)))
    bins = _bin(scores.astype(np.float64))
    assert (np.diff(bins) >= 0).all()
    np.testing.assert_allclose(_middle(bins), scores, rtol=5e-4)


def test_words_about_the_table_come_once(model: TableModel, new: pa.Table) -> None:
    odd = new.append_column("more", pa.array(["x"] * len(new)))
    prices = [str(p) if i % 3 else "cheap" for i, p in enumerate(new["price"].to_pylist())]
    odd = odd.set_column(1, "price", pa.array(prices))
    found = survey(model, in_parts(odd, 100), top=5)
    assert len(found.warnings) == 2
    assert any("'more'" in words for words in found.warnings)
    assert any("'price'" in words and "cheap" in words for words in found.warnings)
