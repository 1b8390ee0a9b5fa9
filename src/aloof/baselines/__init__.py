"""Every system the paper compares with, behind one contract.

::

    >>> from aloof.baselines import BASELINES
    >>> BASELINES["deep-sad"](random_state=0).uses_labels
    True

A baseline is fitted with ``fit(X, y)`` and asked with ``anomaly_score(X)``, higher is worse;
see `Baseline`. Rows are standardised numbers or images. Deep ones train the members of many
problems as one stack with ``fit_problems``; see `DeepBaseline`.
"""

from aloof.baselines.adgan import ADGAN
from aloof.baselines.autoencoder import Autoencoder
from aloof.baselines.classifier import Classifier
from aloof.baselines.contract import Baseline
from aloof.baselines.contrast import KNNContrast
from aloof.baselines.dadgt import DADGT
from aloof.baselines.dagmm import DAGMM
from aloof.baselines.deep import DeepBaseline
from aloof.baselines.deep_sad import DeepSAD
from aloof.baselines.deep_svdd import DeepSVDD
from aloof.baselines.devnet import DevNet
from aloof.baselines.dsebm import DSEBM
from aloof.baselines.hybrid import CodeDetectors, Hybrid
from aloof.baselines.in_context import TabICL, TabPFN
from aloof.baselines.inclusive_nrf import InclusiveNRF
from aloof.baselines.isolation_forest import IsolationForest
from aloof.baselines.kde import KDE
from aloof.baselines.knn import KNN
from aloof.baselines.m2 import M1M2, M2
from aloof.baselines.members import Fitted, LearningMembers, Members
from aloof.baselines.one_class_svm import OneClassSVM
from aloof.baselines.prenet import PReNet
from aloof.baselines.pyod import ECOD, XGBOD
from aloof.baselines.registry import BASELINES
from aloof.baselines.ss_dgm import SSDGM
from aloof.baselines.ssad import SSAD
from aloof.baselines.stacked import fit_many, trains_networks
from aloof.baselines.tabpfn_v1 import TabPFNv1
from aloof.baselines.trees import ExtraTrees, GradientBoosting, LightGBM, RandomForest
from aloof.baselines.unfair import UNFAIR, UNFAIR_GRIDS, Unfair, fit_unfairly, peeked_rows

__all__ = [
    "ADGAN",
    "BASELINES",
    "DADGT",
    "DAGMM",
    "DSEBM",
    "ECOD",
    "KDE",
    "KNN",
    "M1M2",
    "M2",
    "SSAD",
    "SSDGM",
    "UNFAIR",
    "UNFAIR_GRIDS",
    "XGBOD",
    "Autoencoder",
    "Baseline",
    "Classifier",
    "CodeDetectors",
    "DeepBaseline",
    "DeepSAD",
    "DeepSVDD",
    "DevNet",
    "ExtraTrees",
    "Fitted",
    "GradientBoosting",
    "Hybrid",
    "InclusiveNRF",
    "IsolationForest",
    "KNNContrast",
    "LearningMembers",
    "LightGBM",
    "Members",
    "OneClassSVM",
    "PReNet",
    "RandomForest",
    "TabICL",
    "TabPFN",
    "TabPFNv1",
    "Unfair",
    "fit_many",
    "fit_unfairly",
    "peeked_rows",
    "trains_networks",
]
