"""The plain VAE: what the others are when there is no labelled anomaly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from aloof.estimators._base import Detector
from aloof.vae import Method

__all__ = ["VAE"]


@dataclass(kw_only=True, repr=False, eq=False)
class VAE(Detector):
    """Anomaly detection with an ensemble of variational autoencoders.

    Rows labelled as anomalies are left out of the training; nothing else is made of them.

    Parameters
    ----------
    hidden
        Widths of the hidden layers from the data to the latent space; the decoder mirrors
        them. With images, of the dense layers that follow the convolutions. Not used with
        networks of your own.
    filters
        With images: the filters of each convolutional stage, which halves height and width.
        None: as many as suit the size of the images, see `aloof.networks.default_filters`.
    latent_dim
        Size of the latent space.
    n_members
        Size of the ensemble; the score is the mean over its members.
    beta_kl
        Weight of the KL divergence against the reconstruction error of one feature.
    likelihood
        ``"squared-error"`` (Gaussian, fixed variance), ``"gaussian"`` (a learned variance
        for each feature) or ``"bernoulli"`` (data in [0, 1]; set ``standardize=False``).
    max_epochs
        Passes over the normal rows; None: 150, or fewer (at least 15) where that would be
        more than 6,000 batches.
    annealing_epochs
        Passes over which the KL weight grows linearly from zero; None: 2 in 15.
    batch_size
        Most normal rows in a batch.
    learning_rate, lr_schedule
        Of Adam. The schedule is ``"constant"``, ``"step"`` (x 0.1 every 50 epochs) or
        ``"cosine"``, and begins after the warm-up.
    max_grad_norm
        Each member's gradient is scaled down to this norm; None: never.
    trim
        Share of each batch's rows, the worst-fitting ones, that the loss leaves out once
        annealing is over. Set it to about the share of anomalies you expect to hide among
        the rows that are not labelled as such; where there are none, it costs a little.
    aggregate_prior
        Scores compare a row's latent code with those of so many normal training rows (at most a
        quarter of them); 0: with the prior N(0, I), as in the paper. See
        `aloof.scoring.aggregate_prior`.
    patience
        Stop a member after so many epochs without a better loss on held-out rows, and keep
        its best state. None: train for all epochs.
    validation_fraction
        Share of the rows to hold out when `patience` is set. Labelled anomalies are held out
        only where there are at least 10.
    contamination
        Share of the training rows not labelled as anomalies that `predict` calls anomalies.
        It sets the threshold of a fresh fit and nothing else; see `set_threshold`.
    standardize
        Scale features to mean 0 and variance 1 of the rows not labelled as anomalies. None:
        rows of numbers, but not images.
    encoder, decoder
        Factories ``(shape, latent_dim) -> torch.nn.Module`` for networks of your own; see
        `aloof.networks`.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"mps"``.
    precision
        ``"float32"``, or ``"bfloat16"`` to train in autocast.
    compile
        Train through `torch.compile`; worth it for long fits on a GPU.
    checkpoint
        File to keep the state of the fit in, every ten epochs. A killed fit that is started
        again with the same data, parameters and (integer) seed continues from it, to the
        same result. Removed when the fit is done.
    random_state
        Seed. Member k draws from a stream of its own, derived from the seed and k.
    verbose
        Show a progress bar.

    Attributes
    ----------
    offset_
        `predict` calls a row an anomaly if its score is below; may be changed. With a
        false discovery rate, the score that an anomaly has to be below at least.
    threshold_
        The rule behind it, a `Threshold` of `aloof.calibration`.
    calibration_scores_
        Sorted anomaly scores of the rows given to `calibrate`; None before.
    history_
        Curves by name, ``(epochs, n_members)``: ``loss``, ``normal``, ``anomaly``,
        ``reconstruction``, ``kl``, and ``validation`` with `patience`.
    n_iter_, best_epoch_
        Epochs trained, and the epoch each member's state is from.
    training_scores_
        Anomaly scores of the training rows.
    member_seeds_
        The members' seeds.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from aloof import VAE
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> detector = VAE(n_members=2, max_epochs=20, random_state=0).fit(X)
    >>> scores = detector.anomaly_score([[0, 0, 0], [9, -9, 9]])
    >>> bool(scores[1] > scores[0])
    True
    """

    method: ClassVar[Method] = "vae"
