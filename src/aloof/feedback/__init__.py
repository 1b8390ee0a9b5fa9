"""From a reviewer's answers to a better model: the store, which rows to ask about, refits."""

from __future__ import annotations

from aloof.feedback.answer import UNSURE, Answer, Standing

__all__ = ["UNSURE", "Answer", "Standing"]
