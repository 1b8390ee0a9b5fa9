"""How much an answer is worth: reviews simulated on tables whose labels are known."""

from __future__ import annotations

from aloof.bench.review.specification import ReviewSpecification
from aloof.bench.review.study import ReviewStudy, make_review

__all__ = ["ReviewSpecification", "ReviewStudy", "make_review"]
