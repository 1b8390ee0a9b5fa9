"""The methods that can be compared: the four of this package, and its peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aloof.estimators import DETECTORS
from aloof.exceptions import ExperimentError
from aloof.experiments.names import did_you_mean

__all__ = ["OURS", "peers", "resolve_methods", "unfair_peers"]

OURS = DETECTORS


def peers() -> Mapping[str, Callable[..., Any]]:
    """Return the other systems: by name, ``factory(random_state=seed)``."""
    from aloof.baselines import BASELINES

    return BASELINES


def unfair_peers() -> Mapping[str, Callable[..., Any]]:
    """Return the systems that are tuned with labels of test rows, as in `peers`.

    They have to be asked for by name: no group of methods has them.
    """
    from aloof.baselines import UNFAIR

    return UNFAIR


def resolve_methods(names: Iterable[str]) -> tuple[str, ...]:
    """Check names of methods, and put names in the place of ``ours``, ``peers`` and ``all``.

    Returns
    -------
    Each method once, in the order asked for.

    Examples
    --------
    >>> resolve_methods(["dp", "ours"])
    ('dp', 'vae', 'mml', 'mml-dp')
    """
    others = peers()
    unfair = unfair_peers()
    groups = {"ours": [*OURS], "peers": [*others], "all": [*OURS, *others]}
    found: dict[str, None] = {}
    for name in names:
        if not any(name in known for known in (groups, OURS, others, unfair)):
            known = [*groups["all"], *unfair, *groups]
            raise ExperimentError(f"There is no method {name!r}{did_you_mean(name, known)}")
        found.update(dict.fromkeys(groups.get(name, [name])))
    return tuple(found)
