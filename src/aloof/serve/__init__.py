"""A server that scores what is sent to it: rows, documents, images."""

from __future__ import annotations

__all__: list[str] = []
