"""A web page to review the strangest rows on: answers, rules, refits."""

from __future__ import annotations

__all__: list[str] = []
