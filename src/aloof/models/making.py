"""How a model was made: kept with it, and said as a command or a call that makes it again."""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from aloof.calibration import Threshold

__all__ = ["how_to_make", "made_by"]

# Where an option of a command has another name than the parameter.
_OPTIONS = {"kinds": "kind", "date_formats": "date-format", "max_epochs": "epochs"}
# Options that are said without a value, for yes and for no.
_FLAGS = {
    "day_first": ("--day-first", "--month-first"),
    "header": ("--header", "--no-header"),
    "patches": ("--patches", "--whole"),
}
# The parameters of a detector that are options.
_PARAMETERS = {"device", "max_epochs"}
# Options that a command takes more than once.
_REPEATED = {"drop", "text"}
# What JSON cannot hold, or should not.
_ELSEWHERE = "..."


def made_by(
    function: Callable[..., Any],
    data: str | None,
    options: Mapping[str, Any],
    parameters: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what it takes to call a function again, as JSON can hold it.

    Parameters
    ----------
    function
        Its defaults are not kept.
    data
        What it was given first, as the user wrote it; None: something in memory, or nothing.
    options
        What it was given besides.
    parameters
        Of the detector.
    """
    known = inspect.signature(function).parameters
    chosen = {
        name: _plain(value)
        for name, value in options.items()
        if value is not None
        and not (name in known and _plain(value) == _plain(known[name].default))
    }
    more = {name: _plain(value) for name, value in (parameters or {}).items()}
    return {"data": data, "options": chosen, "parameters": more}


def how_to_make(
    training: Mapping[str, Any],
    threshold: Threshold,
    *,
    report: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the lines that make a model again, and a report about it.

    Parameters
    ----------
    training
        Of the model; ``made`` and ``calibrated`` in it are from `made_by`.
    threshold
        Its rule.
    report
        From `made_by`, for a report.
    """
    made, calibrated = training.get("made"), training.get("calibrated")
    ((rule, value),) = threshold.as_dict().items()
    if all(_is_command(call) for call in (made, calibrated, report) if call is not None):
        lines = [
            "# This model comes from an older aloof, which did not record how it was made."
        ]
        if made is not None:
            lines = [_command("fit", made, "--out", "MODEL")]
        if "refit" in training:
            lines.append("aloof refit MODEL  # with the answers that there were")
        if calibrated is not None:
            lines.append(_command("calibrate MODEL", calibrated))
        lines.append(f"aloof threshold MODEL --{rule} {value}")
        if report is not None:
            lines.append(_command("report MODEL", report, "--out", "report.html"))
        return lines
    lines = ["import aloof", "", 'model = aloof.load("MODEL")']
    if made is not None:
        lines[-1] = f"model = aloof.fit({_arguments(made, 'frame')})"
    if "refit" in training:
        lines.append("# Here it was refitted with answers: aloof.feedback.refitting.refit")
    if calibrated is not None:
        lines.append(f"model.calibrate({_arguments(calibrated, 'rows')})")
    lines.append(f"model.set_threshold({rule}={value!r})")
    if report is not None:
        lines.append(f"model.report({_arguments(report, 'new', repr('report.html'))})")
    return lines


def _is_command(call: Mapping[str, Any]) -> bool:
    """Say whether the command line can do it: it takes files, and few parameters."""
    options = call["options"]
    lists = {name for name, value in options.items() if isinstance(value, list)}
    return (
        (call["data"] is not None or not {"normal", "anomaly"}.isdisjoint(options))
        and _ELSEWHERE not in options.values()
        and lists <= _REPEATED
        and set(call["parameters"]) <= _PARAMETERS
    )


def _command(name: str, call: Mapping[str, Any], *more: str) -> str:
    words = ["aloof", *name.split()] + ([] if call["data"] is None else [call["data"]])
    for parameter, value in {**call["options"], **call["parameters"]}.items():
        if parameter in _FLAGS:
            words.append(_FLAGS[parameter][0 if value else 1])
            continue
        option = f"--{_OPTIONS.get(parameter, parameter).replace('_', '-')}"
        if isinstance(value, dict):
            value = [f"{key}={part}" for key, part in value.items()]
        for part in map(str, value if isinstance(value, list) else [value]):
            words += [f"{option}={part}"] if part.startswith("-") else [option, part]
    return shlex.join([*words, *more])


def _arguments(call: Mapping[str, Any], in_memory: str, *more: str) -> str:
    options = {**call["options"], **call["parameters"]}
    first = [in_memory] if call["data"] is None else [repr(call["data"])]
    if call["data"] is None and not {"normal", "anomaly"}.isdisjoint(options):
        first = []
    return ", ".join([*first, *more, *(f"{k}={_python(v)}" for k, v in options.items())])


def _python(value: Any) -> str:
    if value == _ELSEWHERE:
        return _ELSEWHERE
    return repr(tuple(value) if isinstance(value, list) else value)


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping) and all(isinstance(part, str) for part in value.values()):
        return dict(value)
    return _ELSEWHERE
