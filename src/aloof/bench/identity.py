"""What a result depends on, and whether a record still tells that result.

A record says with which data, rows, configuration and revision of the code it was made. One
that lacks a part, because it is older than that part, is taken at its word; but one without a
revision is of the first.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

__all__ = ["RENAMED", "Identity", "jsonable"]

# Options that have another name now, as records have them: old name to new name.
RENAMED: Mapping[str, str] = {
    "channels": "filters",
    "lean": "direction_penalty",
    "references": "aggregate_prior",
}

# Where, how fast and how loudly something runs is not what it computes, and neither is what is
# done to rows that are standardised already.
_NO_CONFIG = frozenset(
    [
        "checkpoint",
        "compile",
        "device",
        "engine",
        "random_state",
        "standardize",
        "verbose",
    ]
)


@dataclass(frozen=True)
class Identity:
    """All that a result depends on, beside its case.

    Attributes
    ----------
    config
        The resolved configuration: an estimator, or a mapping of values, dataclasses and
        mappings.
    facts
        Digests and counts, as they stand in a record.
    revision
        Of the code; see `aloof.bench.revisions`.
    """

    config: Any
    facts: Mapping[str, Any] = field(default_factory=dict)
    revision: int = 1

    @property
    def record(self) -> dict[str, Any]:
        """What goes into a record."""
        return {
            **jsonable(self.facts),
            "revision": self.revision,
            "config": _resolve(self.config),
        }

    def holds(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record is a result of just this, code included."""
        return self.describes(record) and not self.outdates(record)

    def outdates(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record is of an older revision of the code."""
        return bool(record.get("revision", 1) < self.revision)

    def describes(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record is a result of this, whatever the revision of the code."""
        if record.get("status", "ok") != "ok":
            return False
        if any(record.get(key, value) != value for key, value in jsonable(self.facts).items()):
            return False
        if "config" not in record:
            return True
        return _same(_resolve(record["config"]), _resolve(self.config), _defaults(self.config))


def jsonable(value: Any) -> Any:
    """Return a value as JSON gives it back; estimators become their class and parameters."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "get_params"):
        return {"class": type(value).__name__, **jsonable(value.get_params(deep=False))}
    if is_dataclass(value) and not isinstance(value, type):
        return jsonable({f.name: getattr(value, f.name) for f in fields(value)})
    return getattr(value, "__qualname__", None) or str(value)


def _resolve(config: Any) -> dict[str, Any]:
    """Return a configuration as a record has it."""
    if hasattr(config, "get_params"):
        config = config.get_params(deep=False)
    return _counting(jsonable(config))


def _counting(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that results depend on, by the names they have now."""
    return {
        RENAMED.get(key, key): _counting(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if key not in _NO_CONFIG
    }


def _defaults(value: Any) -> Any:
    """Return what options would be if nobody had chosen them: for those a record lacks."""
    if isinstance(value, Mapping):
        return {key: _defaults(item) for key, item in value.items()}
    if hasattr(value, "get_params") or is_dataclass(value):
        parameters = inspect.signature(type(value)).parameters.values()
        found = {p.name: jsonable(p.default) for p in parameters if p.default is not p.empty}
        inner = {p.name: _defaults(getattr(value, p.name, None)) for p in parameters}
        return found | {name: own for name, own in inner.items() if own is not None}
    return None


def _same(stored: Any, now: Any, defaults: Any) -> bool:
    """Compare two configurations; an option that the stored one lacks must have its default."""
    if not isinstance(stored, Mapping) or not isinstance(now, Mapping):
        return bool(stored == now)
    former = defaults if isinstance(defaults, Mapping) else {}
    if not stored.keys() <= now.keys():
        return False
    return all(
        _same(stored[key], value, former.get(key))
        if key in stored
        else key in former and former[key] == value
        for key, value in now.items()
    )
