"""TabPFN v1 with random weights of its form, and with the published ones where they are."""

from __future__ import annotations

import io
import os
import tarfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from aloof.baselines import TabPFNv1
from aloof.baselines.tabpfn_v1 import _configurations, _Network, _read, _View
from aloof.exceptions import ModelError

WIDTH, HEADS, LAYERS, COLUMNS = 16, 2, 3, 10


def layers() -> nn.ModuleList:
    return nn.ModuleList(
        nn.TransformerEncoderLayer(
            WIDTH, HEADS, 2 * WIDTH, dropout=0.0, activation="gelu", batch_first=True
        )
        for _ in range(LAYERS)
    )


@pytest.fixture(scope="module")
def tensors() -> dict[str, torch.Tensor]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        parts = {
            "transformer_encoder.layers": layers(),
            "encoder": nn.Linear(COLUMNS, WIDTH),
            "y_encoder": nn.Linear(1, WIDTH),
            "decoder": nn.Sequential(
                nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, 10)
            ),
        }
        named = {
            f"{k}.{n}": v for k, part in parts.items() for n, v in part.state_dict().items()
        }
        return {k: torch.randn(v.shape) / 2 for k, v in named.items()}


@pytest.fixture(scope="module")
def weights(tensors, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tabpfn") / "own.cpkt"
    state = OrderedDict((f"module.{name}", value) for name, value in tensors.items())
    torch.save((state, None, {"nhead": HEADS}), path)
    return path


def small(weights: Path, **options) -> TabPFNv1:
    return TabPFNv1(weights=weights, **{"random_state": 0, "device": "cpu", **options})


def test_the_network_is_torchs_own_transformer_with_a_mask(tensors):
    with torch.random.fork_rng():
        theirs = layers().eval()
    theirs.load_state_dict(
        {
            name.removeprefix("transformer_encoder.layers."): value
            for name, value in tensors.items()
            if name.startswith("transformer_encoder")
        }
    )
    rng = torch.Generator().manual_seed(1)
    context, rows = (torch.randn(n, COLUMNS, generator=rng) for n in (7, 4))
    y = torch.tensor([0.0, 1, 0, 0, 1, 0, 1])

    def linear(name, x):
        return nn.functional.linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    h = torch.cat(
        [linear("encoder", context) + linear("y_encoder", y[:, None]), linear("encoder", rows)]
    )
    unseen = (torch.arange(11) >= 7).expand(11, 11)
    for layer in theirs:
        h = layer(h[None], src_mask=unseen)[0]
    expected = linear("decoder.2", nn.functional.gelu(linear("decoder.0", h)))[7:]
    network = _Network(tensors, HEADS)
    found = network(rows, network.memory(context, y))
    torch.testing.assert_close(found, expected)


def test_configurations_are_distinct_and_cover_all_that_can_be_varied():
    every = _configurations(5, 1000, 3)
    assert len(every) == len(set(every)) == 2 * 5 * 2
    assert _configurations(5, 7, 3) == every[:7]
    assert _configurations(5, 1000, 4) != every


def test_swapped_classes_are_swapped_back(weights, hidden):
    """Another name of each class, and the network the other way round: the same odds."""
    one = small(weights).fit(hidden.X, hidden.y)
    other = small(weights).fit(hidden.X, hidden.y)
    every = _configurations(hidden.X.shape[1], 1000, 3)
    pairs = {(how.turn, how.power): how for how in every if not how.swapped}
    one._configurations = list(pairs.values())
    other._configurations = [
        how for how in every if how.swapped and (how.turn, how.power) in pairs
    ]
    other._labels = ~other._labels
    mine, theirs = (fitted.anomaly_score(hidden.X_test) for fitted in (one, other))
    np.testing.assert_allclose(mine, -theirs, rtol=1e-4, atol=1e-6)


def test_a_score_is_of_its_row_to_the_bit(weights, hidden):
    fitted = small(weights, n_configurations=4).fit(hidden.X, hidden.y)
    scores = fitted.anomaly_score(hidden.X_test)
    assert len(np.unique(scores)) == len(scores)
    order = np.random.default_rng(0).permutation(len(scores))
    np.testing.assert_array_equal(fitted.anomaly_score(hidden.X_test[order]), scores[order])
    np.testing.assert_array_equal(fitted.anomaly_score(hidden.X_test[5:6]), scores[5:6])


def test_columns_that_there_is_no_room_for_are_left_out(weights, hidden):
    wide = np.random.default_rng(0).normal(size=(len(hidden.X), COLUMNS + 15))
    fitted = small(weights).fit(wide, hidden.y)
    seen = fitted._columns
    assert len(set(seen.tolist())) == COLUMNS
    changed = wide[:20] + 1.0
    changed[:, seen] = wide[:20, seen]
    np.testing.assert_array_equal(
        fitted.anomaly_score(changed), fitted.anomaly_score(wide[:20])
    )
    other = small(weights, random_state=1).fit(wide, hidden.y)._columns
    assert set(seen.tolist()) != set(other.tolist())


def test_the_context_has_all_labelled_anomalies_and_some_normal_rows(weights, hidden):
    fitted = small(weights, max_rows=40).fit(hidden.X, hidden.y)
    assert fitted._labels.sum() == hidden.y.sum()
    np.testing.assert_array_equal(fitted._context[fitted._labels], hidden.X[hidden.y == 1])
    drawn = fitted._context[~fitted._labels]
    assert len(drawn) == 40
    assert {*map(bytes, drawn)} <= {*map(bytes, hidden.X[hidden.y == 0])}


def test_constant_columns_say_nothing(weights, hidden):
    fitted = small(weights).fit(np.ones_like(hidden.X), hidden.y)
    scores = fitted.anomaly_score(hidden.X_test)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores, scores[0])


def test_numbers_far_out_are_squeezed():
    rng = np.random.default_rng(0)
    context = np.stack([rng.normal(size=500), np.exp(2 * rng.normal(size=500))], 1)
    for power in (False, True):
        view = _View(context, power=power)
        inside = view(context[:50])
        assert abs(inside).max() < 10
        far = view(np.array([[1e9, 1e9], [-1e9, -1e9]]))
        assert np.isfinite(far).all()
        assert abs(far).max() < 50


def test_the_source_package_is_read(weights, tensors, tmp_path):
    path = tmp_path / "tabpfn-0.1.tar.gz"
    with tarfile.open(path, "w:gz") as package:
        package.add(weights, "tabpfn-0.1/tabpfn/models_diff/own.cpkt")
    found, heads = _read(path)
    assert heads == HEADS
    assert all(torch.equal(found[name], value) for name, value in tensors.items())


class Malicious:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self):
        return os.mkdir, (str(self._path),)


def test_nothing_that_is_pickled_is_run(hidden, tmp_path):
    path, made = tmp_path / "own.cpkt", tmp_path / "made"
    torch.save((Malicious(made), None, {"nhead": 2}), path)
    with pytest.raises(ModelError, match="as tensors and nothing else: UnpicklingError"):
        small(path).fit(hidden.X, hidden.y)
    assert not made.exists()
    torch.load(path, weights_only=False)
    assert made.exists()


@pytest.mark.parametrize("content", ["nothing", "other tensors", "text"])
def test_what_holds_no_weights_is_refused(content, hidden, tmp_path):
    path = tmp_path / "own.cpkt"
    buffer = io.BytesIO()
    torch.save(({"encoder.bias": torch.zeros(3)}, None, {"nhead": 2}), buffer)
    path.write_bytes(
        {"nothing": b"", "other tensors": buffer.getvalue(), "text": b"x" * 99}[content]
    )
    with pytest.raises(ModelError, match="does not hold the weights of TabPFN v1"):
        small(path).fit(hidden.X, hidden.y)


def test_missing_weights_are_asked_for(hidden, monkeypatch, tmp_path):
    monkeypatch.setenv("ALOOF_DATA", str(tmp_path))
    with pytest.raises(ModelError, match=r"downloads none.*tabpfn-0\.1\.tar\.gz.* 8a37c"):
        TabPFNv1().fit(hidden.X, hidden.y)


# Of tabpfn 0.1.11, with the seed of ours.
AUTHORS = [
    *(0.00449, 0.00879, 0.34828, 0.00523, 0.00242, 0.02565),
    *(0.63057, 0.00402, 0.00528, 0.00468, 0.17417, 0.00494),
    *(0.04683, 0.27716, 0.00237, 0.00788, 0.0678, 0.0342),
    *(0.01019, 0.01011, 0.00151, 0.03943, 0.5098, 0.02897),
    *(0.64921, 0.12009, 0.00463, 0.10978, 0.00695, 0.2789),
]


def test_probabilities_are_those_of_the_authors_code(published):
    """What tabpfn 0.1.11 answers with the published weights, on columns of all kinds."""
    raw = np.random.PCG64(7).random_raw(90 * 6).astype(np.float64) / 2.0**64
    table = np.sqrt(12) * (raw.reshape(90, 6) - 0.5)
    table[52:60, 0] += 2.0
    table[:, 1] = np.exp(2 * table[:, 1])
    table[:, 2] = table[:, 2] > 0
    table[:60, 3] = 1.0
    table[80:] *= 2.0
    labels = np.arange(60) >= 52
    fitted = TabPFNv1(weights=published(), n_configurations=7, random_state=3, device="cpu")
    logits = fitted.fit(table[:60], labels).anomaly_score(table[60:])
    np.testing.assert_allclose(1 / (1 + np.exp(-logits)), AUTHORS, atol=1e-4)
