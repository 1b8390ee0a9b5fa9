"""The methods that can be compared: the paper's four, the committee, and their peers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aloof.bench.specification import known
from aloof.estimators import DETECTORS, Detector
from aloof.estimators._parameters import check_parameters
from aloof.exceptions import ExperimentError
from aloof.suggestion import did_you_mean
from aloof.vae import METHODS

__all__ = [
    "OURS",
    "PAPERS",
    "Compared",
    "check_overrides",
    "has_device",
    "make_ours",
    "make_peer",
    "peers",
    "resolve_methods",
    "table_options",
    "title_of",
    "unfair_peers",
]

OURS = DETECTORS

PAPERS = tuple(METHODS)
"""Those of ours that are the paper's."""

_ON_TABLES: Mapping[str, Mapping[str, Any]] = {
    "ssad": {"max_rows": None},
    "ssad-hybrid": {"detector__max_rows": None},
}


@dataclass(frozen=True)
class Compared:
    """A system that a study compares with others; studies add what else tells theirs apart.

    Attributes
    ----------
    method
        Its name.
    """

    method: str

    @property
    def ours(self) -> bool:
        """Whether it is a method of this package."""
        return self.method in OURS

    @property
    def unfair(self) -> bool:
        """Whether it is tuned with labels of test rows, and so is no peer to beat."""
        return self.method in unfair_peers()


def title_of(method: str) -> str:
    """Return what people call a method; a peer is called by its name."""
    return METHODS[method].title if method in METHODS else method


def peers() -> Mapping[str, Callable[..., Any]]:
    """Return the other systems for tables: by name, ``factory(random_state=seed)``."""
    from aloof.baselines import BASELINES

    return {
        name: factory
        for name, factory in BASELINES.items()
        if not getattr(factory(), "images_only", False)
    }


def unfair_peers() -> Mapping[str, Callable[..., Any]]:
    """Return the systems that are tuned with labels of test rows, as in `peers`.

    They have to be asked for by name: no group of methods has them.
    """
    from aloof.baselines import UNFAIR

    return UNFAIR


def make_ours(method: str, *, seed: int, device: str = "auto", **parameters: Any) -> Detector:
    """Return an unfitted detector of this package; parameters as in `make_peer`."""
    if isinstance(parameters.get("hidden"), list):
        parameters["hidden"] = tuple(parameters["hidden"])
    return OURS[method](**{"device": device, "random_state": seed, **parameters})


def make_peer(method: str, *, seed: int, device: str = "auto", **parameters: Any) -> Any:
    """Return an unfitted peer.

    Parameters
    ----------
    method
        Its name.
    seed
        Its random state.
    device
        For those that train networks.
    parameters
        Of the peer; those of its parts as in ``set_params``.
    """
    plain = peers()[method.removesuffix("-unfair")]()
    if has_device(plain):
        parameters = {"device": device, **parameters}
    if method in unfair_peers():
        return unfair_peers()[method](random_state=seed, parameters=parameters)
    return plain.set_params(random_state=seed, **parameters)


def table_options(method: str) -> dict[str, Any]:
    """Return what a peer gets on tables beside its defaults.

    SSAD learns from all normal rows; its default is for images.

    Examples
    --------
    >>> table_options("ssad-unfair"), table_options("knn")
    ({'max_rows': None}, {})
    """
    return dict(_ON_TABLES.get(method.removesuffix("-unfair"), {}))


def has_device(estimator: Any) -> bool:
    """Return whether an estimator, or what it tunes, can be told where to train."""
    parameters = estimator.get_params(deep=False)
    return "device" in parameters or "device" in (parameters.get("parameters") or {})


def resolve_methods(names: Iterable[str]) -> tuple[str, ...]:
    """Check names of methods, and put names in the place of ``ours``, ``peers`` and ``all``.

    ``ours`` are the paper's. The committee, and what needs weights that no package brings, have
    to be asked for by name.

    Returns
    -------
    Each method once, in the order asked for.

    Examples
    --------
    >>> resolve_methods(["dp", "ours"])
    ('dp', 'vae', 'mml', 'mml-dp')
    """
    every = peers()
    ready = [
        name for name, make in every.items() if not getattr(make(), "needs_weights", False)
    ]
    groups = {"ours": [*PAPERS], "peers": ready, "all": [*PAPERS, *ready]}
    check = known("method", [*OURS, *every, *unfair_peers(), *groups])
    found: dict[str, None] = {}
    for name in names:
        found.update(dict.fromkeys(groups.get(check(name), [name])))
    return tuple(found)


def check_overrides(method: str, overrides: Mapping[str, Any]) -> None:
    """Raise an error for parameters that the estimator of a method does not have."""
    from aloof.baselines import Baseline

    own = OURS[method]() if method in OURS else peers()[method]()
    set_by_studies = {"random_state", "device", "checkpoint", "verbose"}
    known = sorted(set(own.get_params(deep=False)) - set_by_studies)
    for name in overrides:
        if name not in known:
            raise ExperimentError(
                f"The method {method!r} has no parameter {name!r}{did_you_mean(name, known)}"
            )
    try:
        if method in OURS:
            check_parameters(type(own).__name__, overrides)
        elif isinstance(own, Baseline):
            own.set_params(**overrides)._check_parameters()
    except ValueError as error:
        raise ExperimentError(str(error)) from error
