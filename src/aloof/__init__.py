"""Semi-supervised anomaly detection with variational autoencoders.

Lots of (mostly) normal data, a handful of labelled anomalies that do not cover what may go
wrong: `DualPriorVAE` and `MaxMinVAE` learn from both.

>>> from aloof import DualPriorVAE
>>> detector = DualPriorVAE(random_state=0)
"""

from aloof._version import __version__
from aloof.estimators import (
    VAE,
    DualPriorVAE,
    MaxMinDualPriorVAE,
    MaxMinVAE,
    fit_many,
    load,
)
from aloof.labels import encode_labels

__all__ = [
    "VAE",
    "DualPriorVAE",
    "MaxMinDualPriorVAE",
    "MaxMinVAE",
    "__version__",
    "encode_labels",
    "fit_many",
    "load",
]
