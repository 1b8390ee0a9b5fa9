"""Members that are perceptrons, in float32: the fast way to their scores, on a CPU.

A row's score is a function of that row alone here, too, to the last bit. Every chunk of rows
goes through the same products, one member after the other, so that what is computed stays in
a core's cache; threads have chunks of their own and share no product. Whether the library's
products give a row the same bits in every place of a chunk, and in chunks of either size, is
tried once for every shape. Where they do not, scores come from float64.

Codes far from the middle of the prior's are compared with these in float64: in squares of large
numbers that nearly cancel, float32 loses more digits than a score has to spare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, leaky_relu_

from aloof.networks import Affine, affine_layers
from aloof.scoring.aggregate_prior import AggregatePrior
from aloof.scoring.chunks import RowReader, read_parts
from aloof.scoring.direction_penalty import DirectionPenalty
from aloof.threads import share_out
from aloof.vae import LOG_VAR_LIMIT, Ensemble, Objective

__all__ = ["ExplainedRows", "Perceptrons"]

# Rows of a chunk: of many rows, and of a few. What a member makes of the larger one fits into
# a core's cache.
_MANY, _FEW = 1024, 32
_CHUNK_BYTES = 4 * 2**20

# Numbers side by side in a register. Products of widths that are multiples of it are fast, and
# treat all rows alike; others may not.
_LANES = 16
_NOWHERE = -1e30  # how near a code is that is not there
_TINY = 1e-37  # what is not divided by

_LOG_2PI = math.log(2.0 * math.pi)

# Powers of two take a third of the time of those of e, so logarithms are to the base of two
# here. One that is smaller than another by so much is as good as none; far smaller ones, close
# to the smallest number there is, would take long.
_LN2 = math.log(2.0)
_LIMIT = LOG_VAR_LIMIT / _LN2
_LEAST = -60.0

# What is larger, of the squares that a code's divergences are made of, is computed in float64.
_EXACT = 500.0

# What was found out about products, by their shapes.
_STEADY: dict[object, bool] = {}


@dataclass(frozen=True)
class ExplainedRows:
    """What `Perceptrons.explain` finds.

    Attributes
    ----------
    score
        How normal each member takes each row to be, ``(members, n)``.
    reconstruction, latent, expected
        As in `Explanation`, means over the members, ``(n, n_features)``.
    errors
        As `Perceptrons.feature_errors` has them.
    """

    score: NDArray[np.float64]
    reconstruction: NDArray[np.float64]
    latent: NDArray[np.float64]
    expected: NDArray[np.float64]
    errors: NDArray[np.float64]


@dataclass(frozen=True)
class _Layer:
    """A leaky ReLU of ``x @ weight + bias``; with a slope of 1 there is none."""

    weight: Tensor
    bias: Tensor
    slope: float = 1.0

    @classmethod
    def of(
        cls,
        weight: Tensor,
        bias: Tensor,
        slope: float = 1.0,
        dtype: torch.dtype = torch.float32,
    ) -> _Layer:
        """Return a layer of steady widths, with weights of zero for what is not there."""
        wide = _padded(_padded(weight).mT).mT
        return cls(wide.to(dtype).contiguous(), _padded(bias).to(dtype), slope)


@dataclass(frozen=True)
class _Member:
    """One member's layers, and what its rows and codes are compared with.

    Attributes
    ----------
    encoder
        Gives log-variances to the base of two, and then means less the middle of the prior's
        codes.
    decoder
        Takes such means.
    codes
        Of the prior: from ``[variance + mean ** 2, mean]`` of a code to minus its divergence
        from each, in bits, up to what is the same for all; None: the prior is N(0, I).
    exact, reach
        The same in float64, and what bounds its squares: weights of those of a code's mean.
    origin
        What the middle of N(0, I) is decoded to, ``(columns,)``.
    precision
        Of each feature, where it is learned, and else None.
    """

    encoder: list[_Layer]
    decoder: list[_Layer]
    codes: _Layer | None
    exact: _Layer | None
    reach: Tensor
    origin: Tensor
    precision: Tensor | None


@dataclass(frozen=True)
class _Sums:
    """What one member's scores are made of, each ``(size,)``; of all, ``(members, size)``.

    Attributes
    ----------
    error
        Of the features.
    volume, along
        Of a code's log-variances, and of its means.
    nearest
        The largest of what `_Member.codes` gives; without codes, the sum of variances and
        squares of means.
    weight
        How many codes lie as near, counting others less.
    """

    error: Tensor
    volume: Tensor
    along: Tensor
    nearest: Tensor
    weight: Tensor


class _Space:
    """Memory for what one thread computes of a chunk.

    Attributes
    ----------
    x
        Rows, with columns of zeros behind.
    encoder, decoder
        What each layer gives.
    log_var, mean
        Parts of the encoder's last: log-variances to the base of two.
    code, distances
        A few rows that the prior's codes are compared with in float64, and what that gives.
    near
        Of each code of the prior, how much it counts.
    sums, of
        Of all members, and views of it, one for each.
    """

    def __init__(self, members: Sequence[_Member], size: int) -> None:
        member = members[0]
        self.size = size
        self.x = torch.zeros(size, len(member.encoder[0].weight))
        self.encoder = [torch.empty(size, len(layer.bias)) for layer in member.encoder]
        self.decoder = [torch.empty(size, len(layer.bias)) for layer in member.decoder]
        self.log_var, self.mean = self.encoder[-1].chunk(2, 1)
        n_codes = 0 if member.codes is None else len(member.codes.bias)
        self.code = torch.empty(_FEW, self.encoder[-1].shape[1], dtype=torch.float64)
        self.distances = torch.empty(_FEW, n_codes, dtype=torch.float64)
        self.near = torch.empty(size, n_codes)
        self.sums = torch.zeros(5, len(members), size)
        self.of = [_Sums(*part) for part in self.sums.unbind(1)]

    @cached_property
    def slopes(self) -> list[Tensor]:
        """For gradients of codes, and from the last layer of the encoder to the first."""
        return [torch.empty_like(part) for part in (*self.encoder[::-1], self.x)]

    @cached_property
    def variance(self) -> Tensor:
        """For variances of codes."""
        return torch.empty(self.log_var.shape)

    @cached_property
    def step(self) -> Tensor:
        """For the way from the most normal row to each row."""
        return torch.empty_like(self.x)

    @cached_property
    def shares(self) -> Tensor:
        """For the features' shares of each member's divergence."""
        return self.x.new_empty(len(self.of), *self.x.shape)

    @cached_property
    def totals(self) -> Tensor:
        """For what is summed over members: the arrays of `ExplainedRows`."""
        return self.x.new_empty(4, *self.x.shape)


class Perceptrons:
    """Scores of members that are perceptrons.

    Parameters
    ----------
    encoder, decoder
        Their layers.
    objective
        What they were trained with.
    log_var
        Of the likelihood, where it is learned, ``(members, n_features)``; else None.
    prior, penalty
        As in `Scorer`.
    """

    def __init__(
        self,
        encoder: Sequence[Affine],
        decoder: Sequence[Affine],
        objective: Objective,
        *,
        log_var: Tensor | None,
        prior: AggregatePrior | None,
        penalty: DirectionPenalty | None,
    ) -> None:
        self._objective, self._penalty = objective, penalty
        n_members, self._n_features = len(encoder[0].bias), encoder[0].weight.shape[1]
        self._latent_dim = decoder[0].weight.shape[1]
        self._n_latent = self._latent_dim + -self._latent_dim % _LANES
        self._n_codes = 0 if prior is None else prior.mean.shape[1]
        middle = torch.zeros(n_members, self._latent_dim, dtype=torch.float64)
        if prior is not None:
            prior = prior.to(torch.device("cpu"), torch.float64)
            middle = prior.mean.mean(1)
        self._middle = middle.sum(1, keepdim=True)
        self._unit = 0.5 if objective.likelihood == "gaussian" else 1.0  # of an error
        if objective.reduction == "mean":
            self._unit /= self._n_features
        self._surprise = torch.zeros(n_members, 1, dtype=torch.float64)  # without any error
        if log_var is not None:
            self._surprise = self._unit * (log_var.detach().double() + _LOG_2PI)
        self._members = [
            _member(encoder, decoder, objective, prior, middle, log_var, k)
            for k in range(n_members)
        ]
        first = self._members[0]
        widths = [len(layer.bias) for layer in (*first.encoder, *first.decoder)]
        widest = max(*widths, self._n_codes)
        many = 2 ** int(math.log2(_CHUNK_BYTES / (4 * widest)))
        self._many = int(np.clip(many, _FEW, _MANY))

    @classmethod
    def of(
        cls,
        ensemble: Ensemble,
        objective: Objective,
        prior: AggregatePrior | None,
        penalty: DirectionPenalty | None,
    ) -> Perceptrons | None:
        """Return them if all members are perceptrons, and their products treat rows alike."""
        state = ensemble.decoder.state()
        encoder = affine_layers(ensemble.encoder.network, ensemble.encoder.state())
        decoder = affine_layers(ensemble.decoder.network, state)
        if encoder is None or decoder is None or objective.likelihood == "categorical":
            return None
        log_var = state.get("log_var")
        found = cls(encoder, decoder, objective, log_var=log_var, prior=prior, penalty=penalty)
        return found if found._are_steady() else None

    def score(self, rows: RowReader, n_rows: int) -> NDArray[np.float64]:
        """Return each member's score of each row, ``(members, n_rows)``.

        Parameters
        ----------
        rows, n_rows
            As in `Scorer.score`; several threads may read at a time.
        """
        scores = np.empty((len(self._members), n_rows))

        def work(chunk: slice, space: _Space) -> None:
            for member, sums in zip(self._members, space.of, strict=True):
                self._forward(member, space, sums)
            found = self._scores(space, self._divergences(space))
            scores[:, chunk] = found[:, : chunk.stop - chunk.start]

        self._over_chunks(work, rows, n_rows)
        return scores

    def feature_errors(
        self, rows: RowReader, n_rows: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the members' mean absolute error in each feature, and each one's scores.

        Parameters
        ----------
        rows, n_rows
            As in `score`.
        """
        scores = np.empty((len(self._members), n_rows))
        errors = np.empty((n_rows, self._n_features))

        def work(chunk: slice, space: _Space) -> None:
            n = chunk.stop - chunk.start
            wrong = torch.zeros_like(space.x)
            for member, sums in zip(self._members, space.of, strict=True):
                self._forward(member, space, sums, wrong)
            scores[:, chunk] = self._scores(space, self._divergences(space))[:, :n]
            errors[chunk] = (wrong / len(self._members))[:n, : self._n_features]

        self._over_chunks(work, rows, n_rows)
        return errors, scores

    def explain(self, rows: RowReader, n_rows: int) -> ExplainedRows:
        """Return scores, and what each feature contributes to them.

        Parameters
        ----------
        rows, n_rows
            As in `score`.
        """
        scores = np.empty((len(self._members), n_rows))
        arrays = [np.empty((n_rows, self._n_features)) for _ in range(4)]

        def work(chunk: slice, space: _Space) -> None:
            n = chunk.stop - chunk.start
            reconstruction, latent, *_ = space.totals.zero_()
            for k, member in enumerate(self._members):
                self._explained(member, space, k)
            divergences = self._divergences(space)
            for share, divergence in zip(space.shares, divergences.float(), strict=True):
                latent.addcmul_(share, divergence.unsqueeze(-1))
            reconstruction.mul_(self._unit)
            scores[:, chunk] = self._scores(space, divergences)[:, :n]
            space.totals.div_(len(self._members))
            for array, total in zip(arrays, space.totals, strict=True):
                array[chunk] = total[:n, : self._n_features]

        self._over_chunks(work, rows, n_rows)
        arrays[0] += self._surprise.mean(0).numpy()
        return ExplainedRows(scores, *arrays)

    def _over_chunks(
        self, work: Callable[[slice, _Space], None], rows: RowReader, n_rows: int
    ) -> None:
        """Let threads do some work on chunks of their own, each in memory of its own."""

        def share(chunks: Iterable[tuple[slice, int]]) -> None:
            spaces: dict[int, _Space] = {}
            with torch.inference_mode():
                for chunk, size in chunks:
                    if size not in spaces:
                        spaces[size] = _Space(self._members, size)
                    self._read(rows, chunk, spaces[size])
                    work(chunk, spaces[size])

        share_out(share, self._chunks(n_rows))

    def _chunks(self, n_rows: int) -> list[tuple[slice, int]]:
        """Return slices of the rows, and how many rows are computed for each."""
        many, rest = self._many, n_rows % self._many
        whole = n_rows - rest
        chunks = [(slice(start, start + many), many) for start in range(0, whole, many)]
        if rest > many // 4:
            return [*chunks, (slice(whole, n_rows), many)]
        few = range(whole, n_rows, _FEW)
        return [*chunks, *((slice(at, min(at + _FEW, n_rows)), _FEW) for at in few)]

    def _read(self, rows: RowReader, chunk: slice, space: _Space) -> None:
        block = torch.as_tensor(read_parts(rows, chunk)[0])
        space.x[: len(block), : self._n_features] = block
        space.x[len(block) :] = 0.0

    def _forward(
        self, member: _Member, space: _Space, sums: _Sums, wrong: Tensor | None = None
    ) -> None:
        """Compute what one member's scores are made of; add absolute errors to `wrong`."""
        _through(member.encoder, space.x, space.encoder)
        space.log_var.clamp_(-_LIMIT, _LIMIT)
        output = _through(member.decoder, space.mean, space.decoder)
        if wrong is not None:
            wrong += (space.x - output).abs_()
        torch.sum(self._errors(member, space.x, output), -1, out=sums.error)
        self._compare(member, space, sums)

    def _explained(self, member: _Member, space: _Space, k: int) -> None:
        """Do the same, and find each feature's share of the divergence.

        What was expected of each, and how far it was from that, is added to what others found.
        """
        _through(member.encoder, space.x, space.encoder)
        held = None
        least, most = torch.aminmax(torch.exp2(space.log_var, out=space.variance))
        if not 2.0**-_LIMIT < float(least) <= float(most) < 2.0**_LIMIT:
            held = space.log_var.abs() > _LIMIT
            space.log_var.clamp_(-_LIMIT, _LIMIT)
            torch.exp2(space.log_var, out=space.variance)
        output = _through(member.decoder, space.mean, space.decoder)
        reconstruction, _, expected, wrong = space.totals
        expected += output.sigmoid() if self._objective.likelihood == "bernoulli" else output
        wrong += (space.x - output).abs_()
        found = self._errors(member, space.x, output)
        reconstruction[:, : found.shape[1]] += found
        torch.sum(found, -1, out=space.of[k].error)
        self._compare(member, space, space.of[k])
        torch.sub(space.x, member.origin, out=space.step)
        share = torch.mul(self._slope(member, space, k, held), space.step, out=space.shares[k])
        total = share.clamp_(min=0.0).sum(-1, keepdim=True)
        share /= total.clamp(min=_TINY)
        if float(total.min()) <= 0.0:
            share[total[:, 0] <= 0.0] = 1.0 / self._n_features

    def _compare(self, member: _Member, space: _Space, sums: _Sums) -> None:
        """Compare one member's codes with those of the prior."""
        torch.sum(space.log_var, -1, out=sums.volume)
        torch.sum(space.mean, -1, out=sums.along)
        space.log_var.exp2_()
        if member.codes is None:
            space.log_var.addcmul_(space.mean, space.mean)
            torch.sum(space.log_var, -1, out=sums.nearest)
            return
        far = torch.nonzero((space.mean.square() * member.reach).sum(-1) > _EXACT).flatten()
        exact = [
            (rows, _exactly(member, space, rows))
            for rows in torch.split(far, _FEW)
            if len(rows)
        ]
        space.log_var.addcmul_(space.mean, space.mean)
        near = _through([member.codes], space.encoder[-1], [space.near])
        for rows, found in exact:
            near[rows] = found
        torch.amax(near, -1, out=sums.nearest)
        near.sub_(sums.nearest.unsqueeze(-1)).clamp_(min=_LEAST).exp2_()
        torch.sum(near, -1, out=sums.weight)

    def _slope(self, member: _Member, space: _Space, k: int, held: Tensor | None) -> Tensor:
        """Return the gradient of one member's divergence, ``(size, columns)``.

        `held` says where the variance of a code is at a limit; None: nowhere.
        """
        beta, slope = self._objective.beta_kl, space.slopes[0]
        of_log_var, of_mean = slope.chunk(2, 1)
        if member.codes is None:
            torch.mul(space.mean, beta, out=of_mean)
            torch.sub(space.variance, 1.0, out=of_log_var).mul_(0.5 * beta)
        else:
            torch.mm(space.near, member.codes.weight.mT, out=slope)
            slope.mul_(-beta * _LN2 / space.of[k].weight.unsqueeze(-1))
            of_mean.addcmul_(space.mean, of_log_var, value=2.0)
            of_log_var.mul_(space.variance).sub_(0.5 * beta)
        of_log_var.mul_(_LN2)
        if held is not None:
            of_log_var.masked_fill_(held, 0.0)
        if self._penalty is not None:
            root = math.sqrt(self._latent_dim)
            center, cost = float(self._penalty.center[k]), float(self._penalty.cost[k])
            beyond = (space.of[k].along - (center * root - float(self._middle[k]))) * cost > 0.0
            of_mean += beyond.float().mul_(cost / root).unsqueeze(-1)
        layers = zip(member.encoder[::-1], space.encoder[::-1], space.slopes[1:], strict=True)
        for layer, activation, out in layers:
            if layer.slope != 1.0:
                torch.ops.aten.leaky_relu_backward.grad_input(
                    slope, activation, layer.slope, True, grad_input=slope
                )
            slope = torch.mm(slope, layer.weight.mT, out=out)
        return slope

    def _errors(self, member: _Member, x: Tensor, output: Tensor) -> Tensor:
        """Return what each feature adds to a reconstruction error, in place of the output."""
        if self._objective.likelihood == "bernoulli":
            x, output = (part[:, : self._n_features] for part in (x, output))
            return binary_cross_entropy_with_logits(output, x, reduction="none")
        error = output.sub_(x).square_()
        return error if member.precision is None else error.mul_(member.precision)

    def _scores(self, space: _Space, divergences: Tensor) -> Tensor:
        error = space.sums[0].double() * self._unit + self._surprise.sum(1, keepdim=True)
        return -(error + divergences)

    def _divergences(self, space: _Space) -> Tensor:
        """Return what codes are charged for where they lie, ``(members, size)``."""
        of = _Sums(*space.sums.double())
        if self._n_codes:
            total = math.log(self._n_codes) - _LN2 * (of.nearest + of.weight.log2())
        else:
            total = 0.5 * (of.nearest - self._n_latent)
        total = self._objective.beta_kl * (total - 0.5 * _LN2 * of.volume)
        if self._penalty is None:
            return total
        along = (of.along + self._middle) / math.sqrt(self._latent_dim)
        return total + self._penalty.charge_along(along)

    def _are_steady(self) -> bool:
        """Whether a row has the same score in any place, and in chunks of any size."""
        first = self._members[0]
        layers = (*first.encoder, *first.decoder, *([first.codes] if first.codes else []))
        shapes = (*(layer.weight.shape for layer in layers), self._many)
        if shapes not in _STEADY:
            _STEADY[shapes] = self._try()
        return _STEADY[shapes]

    def _try(self) -> bool:
        rng = np.random.default_rng(0)
        rows = rng.standard_normal((self._many, self._n_features))
        rows[::2] *= 1000.0  # far enough for float64
        order = rng.permutation(len(rows))
        whole = self.score(lambda chunk: rows[chunk], len(rows))
        mixed = self.score(lambda chunk: rows[order][chunk], len(rows))
        some = min(2 * _FEW, len(rows) // 4)
        few = self.score(lambda chunk: rows[chunk], some)
        return np.array_equal(mixed, whole[:, order]) and np.array_equal(few, whole[:, :some])


def _member(
    encoder: Sequence[Affine],
    decoder: Sequence[Affine],
    objective: Objective,
    prior: AggregatePrior | None,
    middle: Tensor,
    variance: Tensor | None,
    k: int,
) -> _Member:
    """Return member `k`; `variance` is the logarithm of the likelihood's, or None."""
    latent_dim = decoder[0].weight.shape[1]
    inside = [(layer.weight[k], layer.bias[k], layer.slope) for layer in encoder]
    outside = [(layer.weight[k], layer.bias[k], layer.slope) for layer in decoder]
    z = torch.zeros(latent_dim, dtype=torch.float64)
    for weight, bias, slope in outside:
        z = leaky_relu_(z @ weight + bias, slope)
    origin = torch.sigmoid(z) if objective.likelihood == "bernoulli" else z

    weight, bias, slope = inside[-1]
    mean, log_var = slice(latent_dim), slice(latent_dim, None)
    inside[-1] = (
        torch.cat([_padded(weight[:, log_var] / _LN2), _padded(weight[:, mean])], 1),
        torch.cat([_padded(bias[log_var] / _LN2), _padded(bias[mean] - middle[k])]),
        slope,
    )
    weight, bias, slope = outside[0]
    outside[0] = (weight, bias + middle[k] @ weight, slope)
    codes, reach = (None, z) if prior is None else _codes(prior, middle, k)
    return _Member(
        [_Layer.of(*part) for part in inside],
        [_Layer.of(*part) for part in outside],
        codes and _Layer(codes.weight.float(), codes.bias.float()),
        codes,
        reach.float(),
        _padded(origin).float(),
        None if variance is None else _padded((-variance[k].double()).exp()).float(),
    )


def _codes(prior: AggregatePrior, middle: Tensor, k: int) -> tuple[_Layer, Tensor]:
    """Return `_Member.exact` and `_Member.reach` of member `k`."""
    mean, log_var = prior.mean[k] - middle[k], prior.log_var[k]
    spread = (-log_var).exp()
    weight = torch.cat([_padded(-0.5 * spread), _padded(mean * spread)], 1).mT
    constant = -0.5 * (mean.square() * spread + log_var - 1.0).sum(-1)
    layer = _Layer.of(weight / _LN2, constant / _LN2, dtype=torch.float64)
    layer.bias[len(constant) :] = _NOWHERE
    return layer, _padded(0.5 * spread.amax(0))


def _exactly(member: _Member, space: _Space, rows: Tensor) -> Tensor:
    """Compare the codes of some rows with the prior's in float64, in a block of steady size."""
    assert member.exact is not None
    n = len(rows)
    space.code[:n] = space.encoder[-1][rows]
    space.code[n:] = 0.0
    spread, mean = space.code.chunk(2, 1)
    spread.addcmul_(mean, mean)
    return _through([member.exact], space.code, [space.distances])[:n].float()


def _padded(values: Tensor) -> Tensor:
    """Add zeros to the last axis, up to the next multiple of the lanes."""
    return torch.nn.functional.pad(values, (0, -values.shape[-1] % _LANES))


def _through(layers: Sequence[_Layer], x: Tensor, space: Sequence[Tensor]) -> Tensor:
    """Return what layers make of rows; every one writes into memory of its own."""
    for layer, out in zip(layers, space, strict=True):
        torch.addmm(layer.bias, x, layer.weight, out=out)
        x = out if layer.slope == 1.0 else leaky_relu_(out, layer.slope)
    return x
