from __future__ import annotations

from servers import postgresql

__all__ = ["postgresql"]
