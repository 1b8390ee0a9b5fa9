r"""The two settings of a system: ours, or what its authors published for each data set.

``ours`` is what an estimator comes with, one set of numbers for all data. ``paper`` does not
follow when the defaults change.

For our methods it is what the paper's appendix lists, with the networks of the code that the
paper builds on, Deep SAD's: hidden layers without biases, batch normalisation without gain and
shift, leaky ReLUs. Where the paper is silent or was found to hurt:

- the plain VAE has no row in its tables and takes DP-VAE's; MML-DP-VAE takes DP-VAE's and
  MML-VAE's :math:`\beta_{CUBO}`;
- the paper adds biases to those networks. Here the heads of encoder and decoder have them: a
  mean has to be somewhere. Networks with all of them are a variant of ``odds-readings.toml``;
- the learning rate is constant: decay by 0.1 every 50 epochs leaves thyroid untrained;
- the anomalies' loss of MML-VAE is the paper's exp(2 CUBO), with one sample;
- a batch has 32 labelled anomalies, and gradients are clipped at norm 10.

For deep peers it is what Ruff et al. published with Deep SAD: widths for each data set, and
their schedule. What is not listed here does not differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aloof.bench.methods import OURS, PAPERS, make_ours, make_peer, table_options
from aloof.bench.specification import Setting
from aloof.bench.splits import Scaling
from aloof.bench.variants import Network
from aloof.estimators import Detector
from aloof.exceptions import ExperimentError
from aloof.suggestion import did_you_mean

__all__ = [
    "PAPER",
    "PAPER_NETWORK",
    "PaperRow",
    "build",
    "build_peer",
    "has_setting",
    "parameters",
    "peer_parameters",
]


PAPER_NETWORK = Network(slope=0.01, normalise=True, bias=False)
"""As in the code that the paper builds on."""


@dataclass(frozen=True)
class PaperRow:
    """The paper's choices for one data set.

    Attributes
    ----------
    layers
        Widths of its network; the last one is the latent space.
    dp_rate, mml_rate
        Learning rates of DP-VAE and of MML-VAE.
    beta_kl, alpha, beta_cubo
        As in the estimators.
    """

    layers: tuple[int, ...]
    dp_rate: float
    mml_rate: float
    beta_kl: float
    alpha: float
    beta_cubo: float


PAPER: Mapping[str, PaperRow] = {
    "arrhythmia": PaperRow((128, 64, 32), 5e-4, 5e-4, 0.5, 2.0, 0.5),
    "cardio": PaperRow((32, 16, 8), 1e-3, 1e-3, 0.05, 5.0, 0.05),
    "satellite": PaperRow((32, 16, 8), 1e-3, 1e-3, 0.05, 5.0, 0.05),
    "satimage-2": PaperRow((32, 16, 8), 5e-4, 1e-3, 0.05, 10.0, 0.05),
    "shuttle": PaperRow((32, 16, 8), 1e-3, 1e-3, 0.05, 5.0, 0.05),
    "thyroid": PaperRow((32, 16, 4), 1e-4, 1e-4, 0.05, 10.0, 0.05),
}

# What Ruff et al. published for an autoencoder, for what begins with one, and for its
# pre-training. Widths are in `PAPER`: the paper took over theirs.
_AUTOENCODER: Mapping[str, Any] = {
    "max_epochs": 150,
    "batch_size": 128,
    "learning_rate": 1e-4,
    "milestones": (),
    "weight_decay": 5e-4,
    "bias": False,
}
_SCHEDULE: Mapping[str, Any] = {
    "max_epochs": 150,
    "batch_size": 128,
    "learning_rate": 1e-4,
    "milestones": (50,),
    "weight_decay": 5e-7,
}
_PRETRAINED: Mapping[str, Any] = {
    **_SCHEDULE,
    "pretrain_epochs": 150,
    "pretrain_learning_rate": 1e-4,
    "pretrain_milestones": (),
    "pretrain_weight_decay": 5e-4,
}
_PEERS: Mapping[str, Mapping[str, Any]] = {
    "autoencoder": _AUTOENCODER,
    "oc-svm-hybrid": _AUTOENCODER,
    "iforest-hybrid": _AUTOENCODER,
    "kde-hybrid": _AUTOENCODER,
    "ssad-hybrid": _AUTOENCODER,
    "deep-svdd": _PRETRAINED,
    "deep-svdd-soft": _PRETRAINED,
    "deep-sad": _PRETRAINED,
    "deep-sad-5": _PRETRAINED,
    "deep-sad-no-pretraining": {**_PRETRAINED, "pretrain_epochs": 0},
    "classifier": _SCHEDULE,
    "ss-dgm": {},
    "ss-dgm-m2": {},
    "ss-dgm-m1-m2": {},
}


def has_setting(method: str) -> bool:
    """Return whether the two settings of a method differ."""
    return method in PAPERS or method.removesuffix("-unfair") in _PEERS


def parameters(method: str, setting: Setting, dataset: str) -> dict[str, Any]:
    """Return what a setting passes to the estimator of one of our methods.

    Examples
    --------
    >>> parameters("dp", "ours", "cardio")
    {}
    >>> parameters("dp", "paper", "thyroid")["alpha"]
    10.0
    """
    if setting != "paper":
        return {}
    row = _row(dataset)
    every: dict[str, Any] = {
        "hidden": row.layers[:-1],
        "latent_dim": row.layers[-1],
        "n_members": 5,
        "beta_kl": row.beta_kl,
        "max_epochs": 150,
        "annealing_epochs": 20,
        "batch_size": 128,
        "learning_rate": row.mml_rate if method == "mml" else row.dp_rate,
        "lr_schedule": "constant",
        "likelihood": "squared-error",
        "max_grad_norm": 10.0,
        "trim": 0.0,
        "aggregate_prior": 0,
        "patience": None,
        "gamma": 1.0,
        "jitter": 0.0,
        "warmup_epochs": 50,
        "anomaly_interval": 1,
        "anomaly_batch_size": 32,
        "freeze_decoder": True,
        "separate_encoder": False,
        "alpha": row.alpha,
        "direction_penalty": False,
        "beta_cubo": row.beta_cubo,
        "repulsion": "exp",
        "n_samples": 1,
    }
    known = OURS[method]._get_param_names()
    return {name: value for name, value in every.items() if name in known}


def peer_parameters(method: str, setting: str, dataset: str) -> dict[str, Any]:
    """Return what a setting passes to a peer; ``""`` is the setting of those without one.

    Examples
    --------
    >>> peer_parameters("deep-sad", "paper", "arrhythmia")["hidden"]
    (128, 64, 32)
    >>> peer_parameters("deep-sad", "ours", "arrhythmia")
    {}
    """
    name = method.removesuffix("-unfair")
    found = table_options(method)
    if setting == "paper" and name in _PEERS:
        found |= {"hidden": _row(dataset).layers, **_PEERS[name]}
    return found


def build(
    method: str,
    setting: Setting,
    dataset: str,
    *,
    seed: int,
    scaling: Scaling = "standard",
    overrides: Mapping[str, Any] | None = None,
    network: Network | None = None,
    device: str = "auto",
) -> Detector:
    """Return an unfitted estimator of one of our methods.

    Parameters
    ----------
    method, setting, dataset
        Which.
    seed
        Its random state.
    scaling
        Of the rows it will see: it leaves those in [0, 1] as they are.
    overrides
        Parameters that are not the setting's.
    network
        In place of the setting's.
    device
        Where to train.
    """
    chosen = {**parameters(method, setting, dataset), **(overrides or {})}
    if scaling == "unit":
        chosen = {"standardize": False, **chosen}
    detector = make_ours(method, seed=seed, device=device, **chosen)
    network = network or (PAPER_NETWORK if setting == "paper" else Network())
    return network.given_to(detector)


def build_peer(
    method: str,
    setting: str,
    dataset: str,
    *,
    seed: int,
    overrides: Mapping[str, Any] | None = None,
    device: str = "auto",
) -> Any:
    """Return an unfitted peer; parameters as in `build`."""
    options = peer_parameters(method, setting, dataset) | dict(overrides or {})
    return make_peer(method, seed=seed, device=device, **options)


def _row(dataset: str) -> PaperRow:
    if dataset not in PAPER:
        raise ExperimentError(
            f"The paper has no hyper-parameters for {dataset!r}{did_you_mean(dataset, PAPER)}"
        )
    return PAPER[dataset]
