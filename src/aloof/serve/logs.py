"""What the server says of itself: a line of JSON for each event, and no value of any row."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

__all__ = ["JsonLines", "say", "start_logging"]

_LOGGER = logging.getLogger("aloof.serve")
# What a record has anyway.
_USUAL = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}


class JsonLines(logging.Formatter):
    """Records as JSON. Of an exception the kind and the place: its message may quote values."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(
                timespec="milliseconds"
            ),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= {k: v for k, v in vars(record).items() if k not in _USUAL}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["at"] = _places(record.exc_info[2])
        return json.dumps(line, default=str)


def _places(found: TracebackType | None) -> list[str]:
    return [
        f"{frame.filename}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(found)[-8:]
    ]


def say(event: str, *, level: int = logging.INFO, **facts: Any) -> None:
    """Log an event.

    Parameters
    ----------
    event
        What happened, in words that are always the same.
    level
        As `logging` has it.
    **facts
        What it was about; never values of rows.
    """
    _LOGGER.log(level, event, extra=facts)


def start_logging(stream: TextIO | None = None) -> None:
    """Send what the server and uvicorn say to a stream; standard error by default."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(JsonLines())
    for name in ("aloof.serve", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
    _LOGGER.setLevel(logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
