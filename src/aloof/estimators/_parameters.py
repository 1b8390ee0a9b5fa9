"""Checks of constructor parameters: all of them at once, each with what it should be."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from math import isfinite
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np
from sklearn.utils import check_random_state
from torch import nn

from aloof.exceptions import LabelError
from aloof.labels import meanings
from aloof.objectives import Repulsion
from aloof.training import Precision
from aloof.vae import LIKELIHOODS, LearningRateSchedule

__all__ = [
    "BOOLEAN",
    "Check",
    "check_parameters",
    "integer",
    "one_of",
    "or_none",
    "real",
    "seed_of",
    "widths",
]

# Whether a value will do, and words for what it must be.
Check = tuple[Callable[[Any], bool], str]


def integer(low: int) -> Check:
    """Return the check for whole numbers from `low` on."""
    return (
        lambda v: isinstance(v, Integral) and not isinstance(v, bool) and int(v) >= low,
        f"an int >= {low}",
    )


def real(
    low: float, high: float = float("inf"), *, above: bool = False, below: bool = False
) -> Check:
    """Return the check for finite numbers from `low` to `high`.

    With `above` without `low` itself, with `below` without `high`.
    """

    def check(value: Any) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        try:
            number = float(value)
        except OverflowError:  # an int beyond what a float can hold
            return False
        inside = number > low if above else number >= low
        inside &= number < high if below else number <= high
        return inside and isfinite(number)

    bound = f"{'>' if above else '>='} {low:g}" if isfinite(low) else "that is finite"
    if high != float("inf"):
        bound += f" and {'<' if below else '<='} {high:g}"
    return check, f"a number {bound}"


def one_of(values: tuple[Any, ...]) -> Check:
    """Return the check for some words."""
    return lambda v: isinstance(v, str) and v in values, "one of " + ", ".join(
        map(repr, values)
    )


def or_none(check: Check) -> Check:
    """Return the check that lets None through as well."""
    return lambda v: v is None or check[0](v), f"{check[1]}, or None"


BOOLEAN: Check = (lambda v: isinstance(v, bool), "True or False")
_FACTORY: Check = (
    lambda v: v is None or (callable(v) and not isinstance(v, nn.Module)),
    "a function (shape, latent_dim) that makes a new network for each member",
)


def widths(low: int = 0) -> Check:
    """Return the check for sizes of layers, `low` or more of them."""
    size, _ = integer(1)
    return (
        lambda v: isinstance(v, tuple | list) and len(v) >= low and all(map(size, v)),
        f"a tuple of {'ints' if low == 0 else f'{low} or more ints'} >= 1",
    )


def _are_labels(value: Any) -> bool:
    try:
        meanings(value)
    except LabelError:
        return False
    return True


_CHECKS: dict[str, Check] = {
    "aggregate_prior": integer(0),
    "alpha": real(float("-inf")),
    "anomaly_batch_size": integer(1),
    "anomaly_interval": integer(1),
    "annealing_epochs": or_none(integer(0)),
    "batch_size": integer(1),
    "beta_cubo": real(0),
    "beta_kl": real(0),
    "checkpoint": (
        lambda v: v is None or isinstance(v, str | os.PathLike),
        "the name of a file, or None",
    ),
    "compile": BOOLEAN,
    "confirmed_weight": integer(1),
    "contamination": real(0, 0.5, above=True),
    "decoder": _FACTORY,
    "device": (lambda v: isinstance(v, str), "a string such as 'auto' or 'cuda:0'"),
    "direction_penalty": BOOLEAN,
    "encoder": _FACTORY,
    "filters": or_none(widths()),
    "freeze_decoder": BOOLEAN,
    "gamma": real(0),
    "jitter": or_none(real(0)),
    "hidden": widths(),
    "labels": (
        _are_labels,
        "'aloof', 'pyod', 'deepod', 'deepsad', 'sklearn-outlier' or a mapping to 1, 0 and -1",
    ),
    "latent_dim": integer(1),
    "learning_rate": real(0, above=True),
    "likelihood": one_of(tuple(name for name in LIKELIHOODS if name != "categorical")),
    "lr_schedule": one_of(get_args(LearningRateSchedule)),
    "margin": real(float("-inf")),
    "max_epochs": or_none(integer(1)),
    "max_grad_norm": or_none(real(0, above=True)),
    "n_members": integer(1),
    "n_samples": integer(1),
    "patience": or_none(integer(1)),
    "precision": one_of(get_args(Precision)),
    "random_state": (
        lambda v: v is None or isinstance(v, np.random.RandomState) or integer(0)[0](v),
        "an int >= 0, a RandomState, or None",
    ),
    "repulsion": one_of(get_args(Repulsion)),
    "separate_encoder": BOOLEAN,
    "standardize": (
        lambda v: v is None or isinstance(v, bool) or v == "rank",
        "True, False, 'rank', or None",
    ),
    "trim": real(0, 0.5),
    "validation_fraction": real(0, 0.5, above=True),
    "verbose": (lambda v: isinstance(v, bool | Integral), "True or False"),
    "warmup_epochs": or_none(integer(0)),
}


def check_parameters(
    owner: str, parameters: Mapping[str, Any], more: Mapping[str, Check] | None = None
) -> None:
    """Raise one `ValueError` that names every parameter that is out of bounds.

    Parameters
    ----------
    owner
        Whose they are.
    parameters
        By name.
    more
        What else must hold: of parameters that only the owner has, or in place of what holds
        for others.

    Examples
    --------
    >>> check_parameters("DeepSAD", {"eta": "x"}, {"eta": real(0, above=True)})
    Traceback (most recent call last):
    ValueError: The 'eta' parameter of DeepSAD must be a number > 0; got 'x'.
    """
    checks = _CHECKS | dict(more or {})
    problems = [
        f"The {name!r} parameter of {owner} must be {checks[name][1]}; got {_shown(value)}."
        for name, value in parameters.items()
        if name in checks and not checks[name][0](value)
    ]
    if (parameters.get("encoder") is None) != (parameters.get("decoder") is None):
        problems.append(f"{owner} needs both an encoder and a decoder, or neither.")
    if parameters.get("likelihood") == "bernoulli" and parameters.get("jitter"):
        problems.append(f"{owner} with likelihood='bernoulli' needs jitter=0 or None.")
    seed = parameters.get("random_state")
    if parameters.get("checkpoint") is not None and not isinstance(seed, Integral):
        problems.append(
            f"The 'checkpoint' parameter of {owner} needs an int as random_state: a fit "
            "without a seed cannot continue."
        )
    if problems:
        raise ValueError(" ".join(problems))


def _shown(value: Any) -> str:
    """Return a value in one line; networks print themselves on many."""
    return f"a {type(value).__name__}" if isinstance(value, nn.Module) else repr(value)


def seed_of(random_state: int | np.random.RandomState | None) -> int:
    """Return the seed that ``random_state`` stands for; None: another each time."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    return int(check_random_state(random_state).randint(2**31 - 1))
