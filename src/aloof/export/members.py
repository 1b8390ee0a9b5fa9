"""The members of an ensemble: from rows as networks take them to anomaly scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from aloof.exceptions import ModelError
from aloof.export.functions import leaky
from aloof.export.graph import DOUBLE, FLOAT, Graph, Value
from aloof.networks import (
    Affine,
    Convolution,
    Convolutional,
    affine_layers,
    convolutional_layers,
)
from aloof.scoring import AggregatePrior, DirectionPenalty
from aloof.vae import LOG_VAR_LIMIT, Ensemble, Objective

__all__ = ["Members", "Seen"]

_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Seen:
    """What members make of rows.

    Attributes
    ----------
    score
        The mean of their anomaly scores, ``(rows,)``, double.
    errors
        Their mean absolute error in each feature, ``(rows, n_features)``; None: not asked for.
    """

    score: Value
    errors: Value | None = None


class Members:
    """Networks, and what their codes are compared with.

    What is computed is what `aloof.scoring.Scorer` does: networks in float32, and in float64
    sums over features and members, and how far codes are from the prior's. Codes are measured
    from the middle of those.

    Parameters
    ----------
    ensemble, objective, prior, penalty
        As in `aloof.scoring.Scorer`.

    Raises
    ------
    ModelError
        If these are networks of the user's own.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        objective: Objective,
        prior: AggregatePrior | None,
        penalty: DirectionPenalty | None,
    ) -> None:
        networks = []
        for stack in (ensemble.encoder, ensemble.decoder):
            layers = affine_layers(stack.network, stack.state())
            found = convolutional_layers(stack.network, stack.state())
            if layers is not None:
                found = Convolutional([*layers])
            if found is None:
                raise ModelError(
                    f"The model has networks of your own ({type(stack.network).__name__}), "
                    "and aloof can only write its own in ONNX. Write them with "
                    "torch.onnx.export."
                )
            networks.append(found)
        self._encoder, self._decoder = networks
        self._objective = objective
        self._n = ensemble.n_members
        self._are_rows = isinstance(self._encoder.layers[0], Affine)
        self._log_var: NDArray[np.float64] | None = None
        if objective.likelihood == "gaussian":
            self._log_var = _array(ensemble.decoder.state()["log_var"])
        elif objective.likelihood == "categorical":
            raise ModelError("Models of sequences of words cannot be exported to ONNX.")
        head = self._encoder.layers[-1]
        self._latent_dim = head.bias.shape[1] // 2
        self._prior, self._penalty = prior, penalty
        self._middle = np.zeros((self._n, self._latent_dim))
        if prior is not None:
            self._middle = _array(prior.mean).mean(1)

    def see(self, rows: Value, *, errors: bool = False, bounded: bool = True) -> Seen:
        """Return scores of rows ``(rows, *shape)``, float32 or, not `bounded`, double.

        Parameters
        ----------
        rows
            As the networks take them.
        errors
            Whether errors in each feature are wanted.
        bounded
            Whether no row can be too far away for float32. Otherwise such rows are computed
            once more in double, as `Scorer` does.
        """
        members, wrong = self._forward(rows.to(FLOAT), errors=errors)
        if not bounded:
            members, wrong = self._again_where_too_far(rows, members, wrong)
        # Nothing is left of the order of summation.
        score = members.mean(0).to(FLOAT).to(DOUBLE)
        return Seen(score, wrong)

    def _again_where_too_far(
        self, rows: Value, members: Value, wrong: Value | None
    ) -> tuple[Value, Value | None]:
        g = rows.graph
        total = members.sum(0)
        if wrong is not None:
            total = total + wrong.sum(1).to(DOUBLE)
        # What is not finite is not zero when taken from itself.
        far = ~(total - total).equals(0.0)
        some = far.to(np.int64).sum(0) > 0
        with g.part("far"), g.aside() as nodes:
            wide, wide_wrong = self._forward(rows, errors=wrong is not None)
            chosen = [g.where(_finite(members), members, wide)]
            if wrong is not None and wide_wrong is not None:
                chosen.append(g.where(far.expand(1), wide_wrong.to(FLOAT), wrong))
        as_they_are = [members] if wrong is None else [members, wrong]
        found = g.choose(some, (nodes, chosen), ([], as_they_are))
        return found[0], found[1] if len(found) > 1 else None

    def _forward(self, rows: Value, *, errors: bool) -> tuple[Value, Value | None]:
        """Return each member's anomaly scores ``(members, rows)``, and errors in features."""
        g = rows.graph
        if self._are_rows:
            x = rows.expand(0)
            mean, log_var = self._posterior(self._rows_through(x, self._inner()))
            output = self._rows_through(mean, self._outer())
            wrong = (x - output).do("Abs") if errors else None
            error = self._errors(x, output).sum(-1).to(DOUBLE)
        else:
            codes = [self._images_through(self._encoder, rows, k) for k in range(self._n)]
            middle = g.constant(self._middle[:, None], rows.dtype)
            raw = g.concat([code.expand(0) for code in codes], 0)
            mean, log_var = raw.split(self._latent_dim, self._latent_dim)
            log_var = log_var.clip(-LOG_VAR_LIMIT, LOG_VAR_LIMIT)
            found = []
            for k in range(self._n):
                code = mean.take([k]).squeeze(0)
                output = self._images_through(self._decoder, code, k)
                square = (rows - output) * (rows - output)
                flat = square.do("Flatten", axis=1)
                found.append(flat.sum(1).expand(0))
            error, wrong, mean = g.concat(found, 0).to(DOUBLE), None, mean - middle
        if wrong is not None:
            wrong = wrong.sum(0) / float(self._n)
        total = error * self._unit + g.constant(self._surprise) + self._charge(mean, log_var)
        return total, wrong

    @property
    def n_features(self) -> int:
        """How many numbers a row is."""
        if self._are_rows:
            return int(self._encoder.layers[0].weight.shape[1])
        last = self._decoder.layers[-1]
        assert isinstance(last, Convolution)
        assert last.size is not None
        return int(last.weight.shape[1]) * last.size[0] * last.size[1]

    @property
    def _unit(self) -> float:
        """What an error counts."""
        unit = 0.5 if self._log_var is not None else 1.0
        return unit / self.n_features if self._objective.reduction == "mean" else unit

    @property
    def _surprise(self) -> NDArray[np.float64]:
        """What a row costs without any error, ``(members, 1)``."""
        if self._log_var is None:
            return np.zeros((self._n, 1))
        total: NDArray[np.float64] = (self._log_var + _LOG_2PI).sum(1, keepdims=True)
        return self._unit * total

    def _inner(self) -> list[Affine]:
        """Return the layers of the encoder, for codes measured from the middle."""
        *before, head = (layer for layer in self._encoder.layers if isinstance(layer, Affine))
        shift = np.pad(self._middle, ((0, 0), (0, self._latent_dim)))
        return [*before, Affine(head.weight, head.bias - head.bias.new_tensor(shift))]

    def _outer(self) -> list[Affine]:
        first, *rest = (layer for layer in self._decoder.layers if isinstance(layer, Affine))
        middle = first.weight.new_tensor(self._middle).unsqueeze(1)
        bias = first.bias + (middle @ first.weight).squeeze(1)
        return [Affine(first.weight, bias, first.slope), *rest]

    def _posterior(self, raw: Value) -> tuple[Value, Value]:
        mean, log_var = raw.split(self._latent_dim, self._latent_dim)
        return mean, log_var.clip(-LOG_VAR_LIMIT, LOG_VAR_LIMIT)

    def _rows_through(self, x: Value, layers: Sequence[Affine]) -> Value:
        for layer in layers:
            weight, bias = _narrow(
                x.graph, layer.weight, layer.bias.unsqueeze(1), dtype=x.dtype
            )
            x = leaky(x @ weight + bias, layer.slope)
        return x

    def _images_through(self, network: Convolutional, x: Value, k: int) -> Value:
        g, is_image = x.graph, network.folded is None
        for layer in network.layers:
            if isinstance(layer, Affine):
                if is_image:
                    x, is_image = x.do("Flatten", axis=1), False
                weight, bias = _narrow(g, layer.weight[k], layer.bias[k], dtype=x.dtype)
                x = leaky(x @ weight + bias, layer.slope)
                continue
            if not is_image:
                assert network.folded is not None
                x, is_image = x.do("Reshape", g.indices([-1, *network.folded])), True
                size = network.folded[1:]
            if layer.size is not None:
                for axis in (0, 1):
                    places = np.arange(layer.size[axis]) * size[axis] // layer.size[axis]
                    if layer.size[axis] != size[axis]:
                        x = x.take(places.tolist(), axis=2 + axis)
                size = layer.size
            weight, bias = _narrow(g, layer.weight[k], layer.bias[k], dtype=x.dtype)
            x = leaky(x.do("Conv", weight, bias, pads=list(layer.padding)), layer.slope)
            if layer.pools:
                x = x.do("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
        return x.do("Sigmoid") if network.folded is not None else x

    def _errors(self, x: Value, output: Value) -> Value:
        """Return what each feature adds to a reconstruction error."""
        g = x.graph
        if self._objective.likelihood == "bernoulli":
            beyond = (-output.do("Abs")).do("Exp")
            return output.do("Relu") - output * x + (beyond + 1.0).do("Log")
        error = output - x
        error = error * error
        if self._log_var is None:
            return error
        return error * _narrow(g, np.exp(-self._log_var)[:, None], dtype=x.dtype)[0]

    def _charge(self, mean: Value, log_var: Value) -> Value:
        """Return what codes are charged for where they lie, ``(members, rows)``, double."""
        g = mean.graph
        variance = log_var.do("Exp")
        volume = log_var.sum(-1).to(DOUBLE)
        if self._prior is None:
            spread = variance + mean * mean
            total = spread.sum(-1).to(DOUBLE) * 0.5 - 0.5 * self._latent_dim
        else:
            middle, log_spread = self._middle[:, None], _array(self._prior.log_var)
            center, precision = _array(self._prior.mean) - middle, np.exp(-log_spread)
            weight = np.concatenate([-0.5 * precision, center * precision], 2)
            bias = -0.5 * (center**2 * precision + log_spread - 1.0).sum(2)
            # Squares of large numbers that nearly cancel: float32 would lose too many digits.
            wide = mean.to(DOUBLE)
            code = g.concat([variance.to(DOUBLE) + wide * wide, wide], -1)
            far = code @ g.constant(np.swapaxes(weight, 1, 2)) + g.constant(bias[:, None])
            near = far.to(mean.dtype)
            nearest = near.max(-1)
            others = (near - nearest.expand(-1)).do("Exp").sum(-1).to(DOUBLE).do("Log")
            n_codes = math.log(self._prior.mean.shape[1])
            total = n_codes - (nearest.to(DOUBLE) + others)
        total = (total - volume * 0.5) * self._objective.beta_kl
        if self._penalty is None:
            return total
        sums = mean.sum(-1).to(DOUBLE) + g.constant(self._middle.sum(1, keepdims=True))
        along = sums / math.sqrt(self._latent_dim)
        penalty = self._penalty
        beyond = along - g.constant(_array(penalty.center))
        return total + (beyond * g.constant(_array(penalty.cost))).at_least(0.0)


def _finite(values: Value) -> Value:
    return (values - values).equals(0.0)


def _narrow(g: Graph, *arrays: Tensor | NDArray[np.float64], dtype: DTypeLike) -> list[Value]:
    """Return numbers as float32 in the file, in the dtype to compute in."""
    return [
        g.constant(_array(a) if isinstance(a, Tensor) else a, np.float32).to(dtype)
        for a in arrays
    ]


def _array(tensor: Tensor) -> NDArray[np.float64]:
    found: NDArray[np.float64] = tensor.detach().cpu().double().numpy()
    return found
