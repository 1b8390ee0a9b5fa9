"""Convex kernel SSAD: the one-class SVM that also keeps labelled anomalies outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from aloof.baselines.contract import LabelUse, SubsampledBaseline
from aloof.baselines.kernel import (
    KERNEL_GAMMA,
    MOST_AT_ONCE,
    KernelFunction,
    KernelLines,
    kernel_width,
    whole_kernel,
)
from aloof.baselines.quadratic_program import solve
from aloof.estimators._parameters import Check, or_none, real
from aloof.labels import ANOMALY

__all__ = ["SSAD"]


@dataclass(kw_only=True, repr=False, eq=False)
class SSAD(SubsampledBaseline):
    r"""Semi-supervised anomaly detection with an RBF kernel.

    .. math:: \min_{w, \rho, \gamma \ge 0, \xi \ge 0} \tfrac12 |w|^2 - \rho - \kappa\gamma
        + \frac1{\nu n} \sum_i \xi_i + C \sum_j \xi_j

    so that :math:`w \cdot \phi(x_i) \ge \rho - \xi_i` on normal rows and
    :math:`w \cdot \phi(x_j) \le \rho - \gamma + \xi_j` on labelled anomalies. The score is
    :math:`\rho - w \cdot \phi(x)`. Without a labelled anomaly this is the one-class SVM.

    Parameters
    ----------
    nu
        Bound of the share of normal rows outside, if there is no labelled anomaly; with
        `kappa` it is up to (1 + `kappa`) times that. None: `normal_limit` says how many.
    normal_limit
        The price of a normal row outside; None: 1 / (`nu` n). Ruff et al. have 1, which leaves
        next to no row outside.
    kappa
        Weight of the margin between boundary and anomalies; at most `anomaly_limit` times
        their number, and at most 1 / `nu` - 1.
    anomaly_limit
        C, the price of an anomaly on the wrong side of the margin.
    kernel_gamma
        The factor in the kernel ``exp(-kernel_gamma |x - x'|^2)``; ``"scale"`` is one over
        the number of features times their variance.

    Attributes
    ----------
    coefficients_
        Signed dual coefficients of the rows in the kernel.
    rho_, margin_
        The boundary, and how far below it anomalies shall be.

    Notes
    -----
    Rows labelled 0 count as unlabelled. The method could ask for a margin on them too, but
    a table whose rows are all labelled 0 or 1 would then be another problem than the same
    table with its normal rows unlabelled.

    References
    ----------
    Goernitz et al., "Toward Supervised Anomaly Detection", JAIR 2013.
    """

    nu: float | None = 0.1
    normal_limit: float | None = None
    kappa: float = 1.0
    anomaly_limit: float = 1.0
    kernel_gamma: float | Literal["scale"] = "scale"

    checks: ClassVar[Mapping[str, Check]] = {
        "nu": or_none(real(0, 1, above=True)),
        "normal_limit": or_none(real(0, above=True)),
        "kappa": real(0),
        "anomaly_limit": real(0, above=True),
        "kernel_gamma": KERNEL_GAMMA,
    }
    max_rows: int | None = 4000

    label_use: ClassVar[LabelUse] = "optional"
    without_labels: ClassVar[str] = "a one-class SVM"

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        normal = self.drawn(labels, seed)
        anomalies = np.flatnonzero(labels == ANOMALY)
        rows = X[np.concatenate([normal, anomalies])]
        gamma = kernel_width(self.kernel_gamma, X[normal])
        is_anomaly = np.arange(len(rows)) >= len(normal)
        limits = np.where(is_anomaly, self.anomaly_limit, self._normal_limit(len(normal)))
        whole = len(rows) <= MOST_AT_ONCE
        kernel = whole_kernel(rows, gamma) if whole else KernelLines(rows, gamma)
        solution = solve(kernel, is_anomaly, limits, self.kappa)
        self.coefficients_ = solution.coefficients
        self.rho_, self.margin_ = solution.rho, solution.margin
        support = solution.coefficients != 0
        self._function = KernelFunction(rows[support], solution.coefficients[support], gamma)

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self.rho_ - self._function(X)
        return scores

    def _normal_limit(self, n_normal: int) -> float:
        if self.nu is not None and self.normal_limit is None:
            return 1.0 / (self.nu * n_normal)
        if self.nu is None and self.normal_limit is not None:
            return self.normal_limit
        raise ValueError("SSAD needs one of nu and normal_limit; the other must be None.")
