"""Scores by an exported model, with NumPy and ONNX Runtime alone.

>>> from aloof.lite import load
>>> model = load("model.onnx")  # doctest: +SKIP
>>> model.score({"amount": ["12.50"], "country": ["NO"]})  # doctest: +SKIP

`aloof.export` writes such models. Nothing here imports torch, scikit-learn, SciPy or pyarrow.
"""

from aloof.lite.columns import InputColumn, Unread
from aloof.lite.scorer import LiteModel, load

__all__ = ["InputColumn", "LiteModel", "Unread", "load"]
