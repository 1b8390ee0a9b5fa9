"""What the review page and the scoring server have in common: tokens, hosts, how they run."""

from __future__ import annotations

__all__: list[str] = []
