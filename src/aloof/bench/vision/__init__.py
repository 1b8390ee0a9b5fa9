"""Images people have: defects of a few pixels, photographs, few labels, a backbone."""

from __future__ import annotations

from aloof.bench.vision.specification import VisionSpecification
from aloof.bench.vision.study import VisionStudy, make_vision

__all__ = ["VisionSpecification", "VisionStudy", "make_vision"]
