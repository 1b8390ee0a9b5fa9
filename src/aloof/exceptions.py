"""Every error and warning aloof raises on purpose.

::

    AloofError
    ├── AnswerError (ValueError)        answers of reviewers that cannot be read or kept
    ├── LabelError (ValueError)         labels that cannot be read, or of another convention
    ├── NetworkError (TypeError)        an encoder or decoder that breaks the protocol
    ├── DeviceError (ValueError)        a device that is not there
    ├── DivergenceError (RuntimeError)  a member whose loss is no longer finite
    ├── ExperimentError (ValueError)    an experiment that cannot be run as it is described
    ├── ModelError (ValueError)         a model folder that cannot be read or written
    ├── CheckpointError (ValueError)    a checkpoint that cannot be used
    │   └── StaleCheckpointError        one of another fit, or damaged
    ├── DatasetError (ValueError)       a data set that is unknown, out of reach or damaged
    ├── ImageError (ValueError)         images that cannot be read or do not fit the model
    │   └── BackboneError               weights of a backbone that cannot be used
    ├── ServingError (ValueError)       a server that cannot be started as asked
    ├── TableError (ValueError)         a table that cannot be read or does not fit the model
    ├── TextError (ValueError)          text, or word vectors, that cannot be read
    ├── PlanningError (ValueError)      a world nobody can plan in, or a grid of another size
    └── MissingExtraError (ImportError) an optional dependency that is not installed

    AloofWarning (UserWarning)          knows what it is about, and is said once of each thing
    ├── CalibrationWarning              too few calibration rows for what was asked for
    ├── DeviceWarning                   a device that is not used as well as it could be
    ├── ImageWarning                    images that look odd but can be used
    ├── LabelWarning                    labels that look odd but can be used
    └── TableWarning                    a table that looks odd but can be used
        └── DriftWarning                one that does not look like what was learned from
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

__all__ = [
    "AloofError",
    "AloofWarning",
    "AnswerError",
    "BackboneError",
    "CalibrationWarning",
    "CheckpointError",
    "DatasetError",
    "DeviceError",
    "DeviceWarning",
    "DivergenceError",
    "DriftWarning",
    "ExperimentError",
    "ImageError",
    "ImageWarning",
    "LabelError",
    "LabelWarning",
    "MissingExtraError",
    "ModelError",
    "NetworkError",
    "PlanningError",
    "ServingError",
    "StaleCheckpointError",
    "TableError",
    "TableWarning",
    "TextError",
    "once_of_each",
    "warn_caller",
]


class AloofError(Exception):
    """Base of every error raised by aloof."""


class AnswerError(AloofError, ValueError):
    """Answers of reviewers that cannot be read or kept."""


class LabelError(AloofError, ValueError):
    """Labels that cannot be read, or that follow another convention."""


class NetworkError(AloofError, TypeError):
    """An encoder or decoder that breaks the protocol of `aloof.networks`."""


class DeviceError(AloofError, ValueError):
    """A device that was asked for and is not there."""


class DivergenceError(AloofError, RuntimeError):
    """Training that produced a loss that is not finite."""


class ExperimentError(AloofError, ValueError):
    """An experiment that cannot be run as it is described, or records that cannot be read."""


class ModelError(AloofError, ValueError):
    """A model folder that cannot be read or written."""


class CheckpointError(AloofError, ValueError):
    """A checkpoint that cannot be read or written."""


class StaleCheckpointError(CheckpointError):
    """A checkpoint that does not belong to the fit that found it, or is damaged."""


class DatasetError(AloofError, ValueError):
    """A data set that is unknown, cannot be had, or is not what it should be."""


class ImageError(AloofError, ValueError):
    """Images that cannot be read or do not fit the model."""


class BackboneError(ImageError):
    """Weights of a backbone that cannot be had, are not what they should be, or do not fit."""


class ServingError(AloofError, ValueError):
    """A server that cannot be started as it was asked for."""


class TableError(AloofError, ValueError):
    """A table that cannot be read or does not fit the model."""


class TextError(AloofError, ValueError):
    """Text or word vectors that cannot be read, or a text model that cannot be had."""


class PlanningError(AloofError, ValueError):
    """A world that nobody can plan in, or one that does not fit a model."""


class MissingExtraError(AloofError, ImportError):
    """An optional dependency that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed. Install it with: pip install "
            f"'aloof[{extra}]'"
        )


class AloofWarning(UserWarning):
    """Base of every warning issued by aloof.

    Parameters
    ----------
    words
        What to say.
    about
        What it is about, such as a column; numbers and examples in the words may differ.
        None: the words themselves.
    """

    def __init__(self, words: str, about: str | None = None) -> None:
        super().__init__(words)
        self.about = words if about is None else about


class CalibrationWarning(AloofWarning):
    """Too few calibration rows for the threshold that was asked for."""


class DeviceWarning(AloofWarning):
    """A device that is not used as well as it could be."""


class ImageWarning(AloofWarning):
    """Images that look odd but can be used."""


class LabelWarning(AloofWarning):
    """Labels that look odd but can be used."""


class TableWarning(AloofWarning):
    """A table that looks odd but can be used."""


class DriftWarning(TableWarning, ImageWarning):
    """Rows or images that do not look like those that were learned from."""


_W = TypeVar("_W", bound=AloofWarning)


def once_of_each(say: Callable[[_W], None]) -> Callable[[_W], None]:
    """Return what passes on the first warning of each category about each thing."""
    said: set[tuple[type[AloofWarning], str]] = set()

    def say_once(warning: _W) -> None:
        key = (type(warning), warning.about)
        if key not in said:
            said.add(key)
            say(warning)

    return say_once


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, and point to the line outside of this package that led here."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == __package__
