"""The one-class SVM; with an RBF kernel the same as SVDD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import OneClassSVM as _OneClassSVM

from aloof.baselines.contract import SubsampledBaseline, numpy_seed
from aloof.estimators._parameters import Check, real

__all__ = ["KERNEL_GAMMA", "OneClassSVM"]

_FACTOR, _WORDS = real(0, above=True)
KERNEL_GAMMA: Check = (
    lambda v: (isinstance(v, str) and v == "scale") or _FACTOR(v),
    f"'scale' or {_WORDS}",
)


@dataclass(kw_only=True, repr=False, eq=False)
class OneClassSVM(SubsampledBaseline):
    """scikit-learn's one-class SVM with an RBF kernel.

    Parameters
    ----------
    nu
        Bound of the share of training rows outside.
    kernel_gamma
        The factor in the kernel ``exp(-kernel_gamma |x - x'|^2)``; ``"scale"`` is one over
        the number of features times their variance.
    """

    nu: float = 0.1
    kernel_gamma: float | Literal["scale"] = "scale"

    checks: ClassVar[Mapping[str, Check]] = {
        "nu": real(0, 1, above=True),
        "kernel_gamma": KERNEL_GAMMA,
    }

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        model = _OneClassSVM(nu=self.nu, gamma=self.kernel_gamma)
        model.random_state = numpy_seed(seed)  # no parameter: it would draw from NumPy's own
        self._model = model.fit(X[self.drawn(labels, seed)])

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = -self._model.decision_function(X)
        return scores
