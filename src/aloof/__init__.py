"""Semi-supervised anomaly detection with variational autoencoders.

For plenty of (mostly) normal data and a handful of labelled anomalies that do not cover
everything that can go wrong. `DualPriorVAE` and `MaxMinVAE` learn from both.

>>> from aloof import DualPriorVAE
>>> detector = DualPriorVAE(random_state=0)

For tables with any kind of columns, from a frame or a file: ``aloof.fit(frame,
label="fraud")``. For folders of images: ``aloof.fit(normal="good", anomaly="bad")``.
"""

import importlib
import typing

from aloof._version import __version__

if typing.TYPE_CHECKING:
    from aloof.estimators import (
        VAE,
        Committee,
        DualPriorVAE,
        MaxMinDualPriorVAE,
        MaxMinVAE,
        fit_many,
    )
    from aloof.labels import encode_labels
    from aloof.models.fitting import fit
    from aloof.models.images import ImageModel
    from aloof.models.loading import load
    from aloof.models.table import TableModel
    from aloof.models.table_detector import TableDetector

__all__ = [
    "VAE",
    "Committee",
    "DualPriorVAE",
    "ImageModel",
    "MaxMinDualPriorVAE",
    "MaxMinVAE",
    "TableDetector",
    "TableModel",
    "__version__",
    "encode_labels",
    "fit",
    "fit_many",
    "load",
]

# Imported when they are asked for: torch takes seconds, which `aloof --help` does not need,
# and tables need pyarrow, which the detectors do without.
_HOMES = {
    "VAE": "estimators",
    "Committee": "estimators",
    "DualPriorVAE": "estimators",
    "ImageModel": "models.images",
    "MaxMinDualPriorVAE": "estimators",
    "MaxMinVAE": "estimators",
    "TableDetector": "models.table_detector",
    "TableModel": "models.table",
    "encode_labels": "labels",
    "fit": "models.fitting",
    "fit_many": "estimators",
    "load": "models.loading",
}
_PARTS = (
    *("baselines", "bench", "calibration", "datasets", "estimators", "export", "feedback"),
    *("labels", "lite", "metrics", "mlflow", "models", "networks", "objectives", "planning"),
    *("ray", "report", "review", "scoring", "spark", "text", "training", "vae"),
)


def __getattr__(name: str) -> typing.Any:
    if name in _HOMES:
        found = getattr(importlib.import_module(f"aloof.{_HOMES[name]}"), name)
        globals()[name] = found
        return found
    if name in _PARTS:
        return importlib.import_module(f"aloof.{name}")
    raise AttributeError(f"module 'aloof' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_PARTS})
