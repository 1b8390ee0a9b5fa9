"""Semi-supervised anomaly detection with variational autoencoders.

Lots of (mostly) normal data, a handful of labelled anomalies that do not cover what may go
wrong: `DualPriorVAE` and `MaxMinVAE` learn from both.

>>> from aloof import DualPriorVAE
>>> detector = DualPriorVAE(random_state=0)

Tables of any columns, from a frame or a file: ``aloof.fit(frame, label="fraud")``. Folders of
images: ``aloof.fit(normal="good", anomaly="bad")``.
"""

import importlib
import typing

from aloof._version import __version__
from aloof.estimators import (
    VAE,
    DualPriorVAE,
    MaxMinDualPriorVAE,
    MaxMinVAE,
    fit_many,
)
from aloof.labels import encode_labels
from aloof.models.fitting import fit
from aloof.models.loading import load

if typing.TYPE_CHECKING:
    from aloof.models.images import ImageModel
    from aloof.models.table import TableModel

__all__ = [
    "VAE",
    "DualPriorVAE",
    "ImageModel",
    "MaxMinDualPriorVAE",
    "MaxMinVAE",
    "TableModel",
    "__version__",
    "encode_labels",
    "fit",
    "fit_many",
    "load",
]

# Tables need pyarrow, which the detectors do without; images are found in the same way.
_MODELS = {"ImageModel": "aloof.models.images", "TableModel": "aloof.models.table"}


def __getattr__(name: str) -> typing.Any:
    if name not in _MODELS:
        raise AttributeError(f"module 'aloof' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODELS[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODELS})
