"""Checks of constructor parameters: all of them at once, each with what it should be."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from math import isfinite
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np

from aloof.objectives import Repulsion
from aloof.training import LIKELIHOODS, LearningRateSchedule, Precision

__all__ = ["check_parameters"]

_Check = tuple[Callable[[Any], bool], str]


def _integer(low: int) -> _Check:
    return (
        lambda v: isinstance(v, Integral) and not isinstance(v, bool) and int(v) >= low,
        f"an int >= {low}",
    )


def _real(low: float, high: float = float("inf"), *, above: bool = False) -> _Check:
    def check(value: Any) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        try:
            number = float(value)
        except OverflowError:  # an int beyond what a float can hold
            return False
        inside = number > low if above else number >= low
        return inside and number <= high and isfinite(number)

    bound = f"{'>' if above else '>='} {low:g}" if isfinite(low) else "that is finite"
    if high != float("inf"):
        bound += f" and <= {high:g}"
    return check, f"a number {bound}"


def _one_of(values: tuple[Any, ...]) -> _Check:
    return lambda v: isinstance(v, str) and v in values, "one of " + ", ".join(
        map(repr, values)
    )


def _or_none(check: _Check) -> _Check:
    return lambda v: v is None or check[0](v), f"{check[1]}, or None"


_BOOLEAN: _Check = (lambda v: isinstance(v, bool), "True or False")
_FACTORY: _Check = (lambda v: v is None or callable(v), "a function (shape, latent_dim)")

_WIDTHS: _Check = (
    lambda v: isinstance(v, tuple | list) and all(_integer(1)[0](w) for w in v),
    "a tuple of ints >= 1",
)

_CHECKS: dict[str, _Check] = {
    "alpha": _real(float("-inf")),
    "anomaly_batch_size": _integer(1),
    "anomaly_interval": _integer(1),
    "annealing_epochs": _or_none(_integer(0)),
    "batch_size": _integer(1),
    "beta_cubo": _real(0),
    "beta_kl": _real(0),
    "checkpoint": (
        lambda v: v is None or isinstance(v, str | os.PathLike),
        "the name of a file, or None",
    ),
    "compile": _BOOLEAN,
    "contamination": _real(0, 0.5, above=True),
    "decoder": _FACTORY,
    "device": (lambda v: isinstance(v, str), "a string such as 'auto' or 'cuda:0'"),
    "encoder": _FACTORY,
    "filters": _or_none(_WIDTHS),
    "freeze_decoder": _BOOLEAN,
    "gamma": _real(0),
    "jitter": _or_none(_real(0)),
    "hidden": _WIDTHS,
    "latent_dim": _integer(1),
    "lean": _BOOLEAN,
    "learning_rate": _real(0, above=True),
    "likelihood": _one_of(tuple(name for name in LIKELIHOODS if name != "categorical")),
    "lr_schedule": _one_of(get_args(LearningRateSchedule)),
    "margin": _real(float("-inf")),
    "max_epochs": _or_none(_integer(1)),
    "max_grad_norm": _or_none(_real(0, above=True)),
    "n_members": _integer(1),
    "n_samples": _integer(1),
    "patience": _or_none(_integer(1)),
    "precision": _one_of(get_args(Precision)),
    "random_state": (
        lambda v: v is None or isinstance(v, np.random.RandomState) or _integer(0)[0](v),
        "an int >= 0, a RandomState, or None",
    ),
    "references": _integer(0),
    "repulsion": _one_of(get_args(Repulsion)),
    "separate_encoder": _BOOLEAN,
    "standardize": _or_none(_BOOLEAN),
    "trim": _real(0, 0.5),
    "validation_fraction": _real(0, 0.5, above=True),
    "verbose": (lambda v: isinstance(v, bool | Integral), "True or False"),
    "warmup_epochs": _or_none(_integer(0)),
}


def check_parameters(owner: str, parameters: Mapping[str, Any]) -> None:
    """Raise one `ValueError` that names every parameter that is out of bounds."""
    problems = [
        f"The {name!r} parameter of {owner} must be {_CHECKS[name][1]}; got {value!r}."
        for name, value in parameters.items()
        if name in _CHECKS and not _CHECKS[name][0](value)
    ]
    if (parameters.get("encoder") is None) != (parameters.get("decoder") is None):
        problems.append(f"{owner} needs both an encoder and a decoder, or neither.")
    if parameters.get("likelihood") == "bernoulli" and parameters.get("jitter"):
        problems.append(f"{owner} with likelihood='bernoulli' needs jitter=0 or None.")
    seed = parameters.get("random_state")
    if parameters.get("checkpoint") is not None and not isinstance(seed, Integral):
        problems.append(
            f"The 'checkpoint' parameter of {owner} needs an int as random_state: a fit "
            "without a seed cannot be continued."
        )
    if problems:
        raise ValueError(" ".join(problems))
