"""TabPFN v1: a transformer, trained once and for all, that reads a table as its context."""

from __future__ import annotations

import io
import os
import pickle
import random
import tarfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import PowerTransformer
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

from aloof.baselines.contract import LabelUse, SubsampledBaseline, numpy_seed
from aloof.baselines.weights import WEIGHTS, find_weights
from aloof.estimators._parameters import Check, integer
from aloof.exceptions import ModelError
from aloof.labels import ANOMALY
from aloof.scoring import over_rows
from aloof.training import resolve_device

__all__ = ["TabPFNv1"]

_ADVICE = (
    "They are inside tabpfn-0.1.tar.gz, the source package of tabpfn 0.1 on PyPI (SHA-256 "
    "8a37c4131e13ad9f9aae678e659b1169e7e1bd4bbcae2b3fc2718df8ae7fdc88, 96 MB)."
)
_TEMPERATURE = 0.8
_SIGMAS = 4.0  # beyond which numbers are squeezed
_CHUNK = 64  # rows scored at once

_Rows = NDArray[np.float64]
_Memory = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class _Configuration:
    """One way to show the table: classes swapped or not, columns turned, numbers reshaped."""

    swapped: bool
    turn: int
    power: bool


@dataclass(kw_only=True, repr=False, eq=False)
class TabPFNv1(SubsampledBaseline):
    """TabPFN v1, with labelled anomalies as one class and everything else as the other.

    Nothing is trained: the training rows are the context of each row that is scored. The
    score is the mean log-odds over several ways to show the table. Of more columns than the
    network has room for (100), so many are drawn by the seed.

    Parameters
    ----------
    weights
        The published weights, or the source package of tabpfn 0.1 that has them inside. None:
        a file with the name of either in the folder ``tabpfn`` of ``ALOOF_DATA``. Only
        tensors are read from it; nothing that is pickled there is run.
    n_configurations
        Ways to show the table: with classes swapped, columns in another order, and numbers as
        they are or made more Gaussian. The time grows with them; the authors' first release
        has 32, their last one of this network 3.
    max_rows
        Most normal rows in the context; the network has been trained on about 1,000 rows.
        Labelled anomalies are all kept.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"mps"``.

    Notes
    -----
    The network is written anew, for inference only, and computes what the code of its authors
    does, with the same seeds; but rows of the context are read once for all rows to score.

    References
    ----------
    Hollmann et al., "TabPFN: A Transformer That Solves Small Tabular Classification Problems
    in a Second", ICLR 2023.
    """

    weights: str | os.PathLike[str] | None = None
    n_configurations: int = 4
    max_rows: int | None = 1000
    device: str = "auto"

    label_use: ClassVar[LabelUse] = "required"
    needs_weights: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = {
        "weights": WEIGHTS,
        "n_configurations": integer(1),
    }

    def _fit(self, X: _Rows, labels: NDArray[np.int64], seed: int) -> None:
        names = ("*.cpkt", "tabpfn-0.1.tar.gz")
        path = find_weights(self.weights, "TabPFN v1", "tabpfn", names, _ADVICE)
        self._device = resolve_device(self.device)
        self._network = _Network(*_read(path)).to(self._device)
        rows = self.drawn_with_anomalies(labels, seed)
        room = self._network.n_columns
        self._columns = np.arange(X.shape[1])
        if X.shape[1] > room:
            rng = np.random.default_rng(seed)
            self._columns = np.sort(rng.choice(X.shape[1], room, replace=False))
        self._context = X[np.ix_(rows, self._columns)]
        self._labels = labels[rows] == ANOMALY
        self._views = {power: _View(self._context, power=power) for power in (False, True)}
        self._configurations = _configurations(
            len(self._columns), self.n_configurations, numpy_seed(seed)
        )

    def _anomaly_score(self, X: _Rows) -> _Rows:
        X = X[:, self._columns]
        seen = {power: view(X) for power, view in self._views.items()}
        read = {power: view(self._context) for power, view in self._views.items()}
        total = np.zeros(len(X))
        for how in self._configurations:
            # One class is 1 where it is not swapped.
            classes = torch.from_numpy(self._labels != how.swapped)
            with torch.no_grad():
                memory = self._network.memory(
                    self._tensor(self._turned(read[how.power], how)),
                    classes.to(self._device, torch.float32),
                )
            odds = self._odds(memory, self._turned(seen[how.power], how))
            total += -odds if how.swapped else odds
        return total / len(self._configurations)

    def _odds(self, memory: _Memory, rows: _Rows) -> _Rows:
        """Return the log-odds of class 1 against class 0."""

        def function(x: Tensor) -> Tensor:
            classes = self._network(x[0], memory)
            return (classes[:, 1] - classes[:, 0])[None] / _TEMPERATURE

        found: _Rows = over_rows(
            function,
            rows.__getitem__,
            len(rows),
            _CHUNK,
            n_members=1,
            device=self._device,
            dtype=torch.float32,
        )[0]
        return found

    def _turned(self, rows: _Rows, how: _Configuration) -> _Rows:
        """Return rows with the columns in another order, as wide as the network is."""
        turned = np.concatenate([rows[:, how.turn :], rows[:, : how.turn]], 1)
        room = self._network.n_columns
        turned = turned * (room / max(1, rows.shape[1]))
        return np.pad(turned, ((0, 0), (0, room - rows.shape[1])))

    def _tensor(self, rows: _Rows) -> Tensor:
        return torch.from_numpy(rows).to(self._device, torch.float32)


def _configurations(n_columns: int, n: int, seed: int) -> list[_Configuration]:
    """Return the first `n` configurations, in the order of the authors' code."""
    private = torch.Generator().manual_seed(seed)
    turns = torch.randperm(n_columns, generator=private).tolist()
    swaps = torch.randperm(2, generator=private).tolist()
    pairs = list(product(swaps, turns))
    random.Random(seed).shuffle(pairs)
    every = product(pairs, (False, True))
    found = [_Configuration(bool(swap), turn, power) for (swap, turn), power in every]
    return found[:n]


class _View:
    """Columns made comparable, by what the context has in them; constant ones are left out."""

    def __init__(self, context: _Rows, *, power: bool) -> None:
        self._mean, self._spread = context.mean(0), context.std(0, ddof=1) + 1e-6
        scaled = self._scaled(context)
        self._kept = np.flatnonzero((scaled != scaled[:1]).any(0))
        self._power = [_power_of(scaled[:, [k]]) if power else None for k in self._kept]
        self._low, self._high = _limits(self._reshaped(scaled))

    def __call__(self, rows: _Rows) -> _Rows:
        rows = self._reshaped(self._scaled(rows))
        squeezed = np.log1p(np.abs(rows))
        rows = np.maximum(rows, self._low - squeezed)
        return np.minimum(rows, self._high + squeezed)

    def _scaled(self, rows: _Rows) -> _Rows:
        scaled: _Rows = np.clip((rows - self._mean) / self._spread, -100.0, 100.0)
        return scaled

    def _reshaped(self, scaled: _Rows) -> _Rows:
        rows = scaled[:, self._kept]
        with np.errstate(all="ignore"):
            for k, power in enumerate(self._power):
                if power is not None:
                    rows[:, [k]] = np.nan_to_num(power.transform(rows[:, [k]]))
        return rows


def _power_of(column: _Rows) -> PowerTransformer | None:
    """Return what makes a column more Gaussian, or None where that goes wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            # In float32, as the authors' code: on skewed columns the optimum depends on it.
            power = PowerTransformer().fit(column.astype(np.float32))
            power.transform(column)
        except Exception:  # whatever it is, the authors' code leaves the column alone then
            return None
    return power


def _limits(rows: _Rows) -> tuple[_Rows, _Rows]:
    """Return what is within four standard deviations, of those rows that are within four."""
    for _ in range(2):
        low, high = (
            np.nanmean(rows, 0) + sign * _SIGMAS * np.nanstd(rows, 0, ddof=1)
            for sign in (-1.0, 1.0)
        )
        rows = np.where((rows < low) | (rows > high), np.nan, rows)
    return low, high


class _Network:
    """The transformer: rows of the context see each other, other rows see the context alone.

    Parameters
    ----------
    tensors
        By the names that the authors gave them.
    n_heads
        Of the attention.
    """

    def __init__(self, tensors: Mapping[str, Tensor], n_heads: int) -> None:
        self._tensors, self._n_heads = dict(tensors), n_heads
        self._layers = [
            _name(k) for k in range(len(tensors)) if f"{_name(k)}norm1.bias" in tensors
        ]
        self.n_columns = tensors["encoder.weight"].shape[1]

    def to(self, device: torch.device) -> _Network:
        tensors = {name: value.to(device) for name, value in self._tensors.items()}
        return _Network(tensors, self._n_heads)

    def memory(self, x: Tensor, y: Tensor) -> _Memory:
        """Return what each layer remembers of the context."""
        h = self._linear("encoder.", x) + self._linear("y_encoder.", y[:, None])
        kept = []
        for layer in self._layers:
            kept.append(self._keys(layer, h))
            h = self._passed(layer, h, kept[-1])
        return kept

    def __call__(self, x: Tensor, memory: _Memory) -> Tensor:
        """Return the logit of each class, ``(n, classes)``."""
        h = self._linear("encoder.", x)
        for layer, keys in zip(self._layers, memory, strict=True):
            h = self._passed(layer, h, keys)
        return self._linear("decoder.2.", gelu(self._linear("decoder.0.", h)))

    def _keys(self, layer: str, h: Tensor) -> tuple[Tensor, Tensor]:
        weight, bias = self._attention(layer)
        width = h.shape[-1]
        keys, values = linear(h, weight[width:], bias[width:]).chunk(2, -1)
        return self._heads(keys), self._heads(values)

    def _passed(self, layer: str, h: Tensor, keys: tuple[Tensor, Tensor]) -> Tensor:
        weight, bias = self._attention(layer)
        width = h.shape[-1]
        asked = self._heads(linear(h, weight[:width], bias[:width]))
        found = scaled_dot_product_attention(asked, *keys).transpose(0, 1).flatten(1)
        h = self._norm(f"{layer}norm1.", h + self._linear(f"{layer}self_attn.out_proj.", found))
        inner = gelu(self._linear(f"{layer}linear1.", h))
        return self._norm(f"{layer}norm2.", h + self._linear(f"{layer}linear2.", inner))

    def _attention(self, layer: str) -> tuple[Tensor, Tensor]:
        return (
            self._tensors[f"{layer}self_attn.in_proj_weight"],
            self._tensors[f"{layer}self_attn.in_proj_bias"],
        )

    def _heads(self, h: Tensor) -> Tensor:
        return h.view(len(h), self._n_heads, -1).transpose(0, 1)

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return linear(x, self._tensors[f"{name}weight"], self._tensors[f"{name}bias"])

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self._tensors[f"{name}weight"], self._tensors[f"{name}bias"]
        return layer_norm(x, weight.shape, weight, bias)


def _name(layer: int) -> str:
    return f"transformer_encoder.layers.{layer}."


def _read(path: Path) -> tuple[dict[str, Tensor], int]:
    """Return the tensors of a file, by name, and the number of heads; run nothing in it."""
    try:
        content = path.read_bytes()
        if tarfile.is_tarfile(path):
            content = _unpacked(path)
        tensors, _, settings = torch.load(
            io.BytesIO(content), map_location="cpu", weights_only=True
        )
        named = {name.removeprefix("module."): value for name, value in tensors.items()}
        heads = int(settings["nhead"])
        _Network(named, heads)
    except (
        pickle.UnpicklingError,
        RuntimeError,
        OSError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        EOFError,
        tarfile.TarError,
    ) as error:
        raise ModelError(
            f"{path} does not hold the weights of TabPFN v1, as tensors and nothing else: "
            f"{type(error).__name__}. {_ADVICE}"
        ) from error
    return named, heads


def _unpacked(path: Path) -> bytes:
    """Return the file with the weights inside the source package."""
    with tarfile.open(path) as package:
        (inside,) = (file for file in package if file.name.endswith(".cpkt"))
        opened = package.extractfile(inside)
        assert opened is not None
        return opened.read()
