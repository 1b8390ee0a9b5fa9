"""The one-class SVM; with an RBF kernel the same as SVDD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import OneClassSVM as _OneClassSVM

from aloof.baselines.contract import SubsampledBaseline, numpy_seed
from aloof.baselines.kernel import (
    KERNEL_GAMMA,
    MOST_AT_ONCE,
    KernelFunction,
    kernel_width,
    whole_kernel,
)
from aloof.estimators._parameters import Check, real

__all__ = ["OneClassSVM"]


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

    Attributes
    ----------
    rho_
        The level of the decision function at the boundary.
    """

    nu: float = 0.1
    kernel_gamma: float | Literal["scale"] = "scale"

    checks: ClassVar[Mapping[str, Check]] = {
        "nu": real(0, 1, above=True),
        "kernel_gamma": KERNEL_GAMMA,
    }

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        rows = X[self.drawn(labels, seed)]
        gamma = kernel_width(self.kernel_gamma, rows)
        # libsvm makes a kernel number by number: a product of matrices is many times as fast.
        whole = len(rows) <= MOST_AT_ONCE
        model = _OneClassSVM(
            nu=self.nu, **({"kernel": "precomputed"} if whole else {"gamma": gamma})
        )
        model.random_state = numpy_seed(seed)  # no parameter: it would draw from NumPy's own
        model.fit(whole_kernel(rows, gamma) if whole else rows)
        self.rho_ = -float(model.intercept_[0])
        self._function = KernelFunction(rows[model.support_], model.dual_coef_[0], gamma)

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self.rho_ - self._function(X)
        return scores
