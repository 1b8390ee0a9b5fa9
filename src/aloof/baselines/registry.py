"""Every baseline by a short name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from aloof.baselines.adgan import ADGAN
from aloof.baselines.autoencoder import Autoencoder
from aloof.baselines.classifier import Classifier
from aloof.baselines.contract import Baseline
from aloof.baselines.contrast import KNNContrast
from aloof.baselines.dadgt import DADGT
from aloof.baselines.dagmm import DAGMM
from aloof.baselines.deep_sad import DeepSAD
from aloof.baselines.deep_svdd import DeepSVDD
from aloof.baselines.devnet import DevNet
from aloof.baselines.dsebm import DSEBM
from aloof.baselines.hybrid import Hybrid
from aloof.baselines.in_context import TabICL, TabPFN
from aloof.baselines.inclusive_nrf import InclusiveNRF
from aloof.baselines.isolation_forest import IsolationForest
from aloof.baselines.kde import KDE
from aloof.baselines.knn import KNN
from aloof.baselines.m2 import M1M2, M2
from aloof.baselines.one_class_svm import OneClassSVM
from aloof.baselines.prenet import PReNet
from aloof.baselines.pyod import ECOD, XGBOD
from aloof.baselines.ss_dgm import SSDGM
from aloof.baselines.ssad import SSAD
from aloof.baselines.tabpfn_v1 import TabPFNv1
from aloof.baselines.trees import ExtraTrees, GradientBoosting, LightGBM, RandomForest

__all__ = ["BASELINES"]


def _hybrid(detector: Callable[[], Baseline]) -> Callable[..., Hybrid]:
    """Return a factory of hybrids, each with a detector of its own."""

    def factory(**parameters: Any) -> Hybrid:
        return Hybrid(detector=detector(), **parameters)

    return factory


BASELINES: dict[str, Callable[..., Baseline]] = {
    "oc-svm": OneClassSVM,
    "oc-svm-hybrid": _hybrid(OneClassSVM),
    "iforest": IsolationForest,
    "iforest-hybrid": _hybrid(IsolationForest),
    "kde": KDE,
    "kde-hybrid": _hybrid(KDE),
    "knn": KNN,
    "ecod": ECOD,
    "autoencoder": Autoencoder,
    "deep-svdd": DeepSVDD,
    "deep-svdd-soft": partial(DeepSVDD, objective="soft-boundary"),
    "adgan": ADGAN,
    "dadgt": DADGT,
    "dsebm": DSEBM,
    "dagmm": DAGMM,
    "inclusive-nrf": InclusiveNRF,
    "ssad": SSAD,
    "ssad-hybrid": _hybrid(SSAD),
    "ss-dgm": SSDGM,
    "ss-dgm-m2": M2,
    "ss-dgm-m1-m2": M1M2,
    "deep-sad": DeepSAD,
    "deep-sad-5": partial(DeepSAD, n_members=5),
    "deep-sad-no-pretraining": partial(DeepSAD, pretrain_epochs=0),
    "devnet": DevNet,
    "prenet": PReNet,
    "classifier": Classifier,
    "gradient-boosting": GradientBoosting,
    "lightgbm": LightGBM,
    "random-forest": RandomForest,
    "random-forest-balanced": partial(RandomForest, balanced=True),
    "extra-trees": ExtraTrees,
    "xgbod": XGBOD,
    "knn-contrast": KNNContrast,
    "tabpfn-v1": TabPFNv1,
    "tabpfn": TabPFN,
    "tabicl": TabICL,
}
"""From names to factories. A factory takes the parameters of its class by keyword, all
optional; ``BASELINES[name]().uses_labels`` says whether labelled anomalies are learned from.
"""
