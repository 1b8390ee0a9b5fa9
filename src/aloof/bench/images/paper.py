"""The paper's own figures for image sets: its results, on its draws of 90 problems, not ours.

Transcribed from Daniel, Kurutach, Tamar: Deep Variational Semi-Supervised Novelty Detection.
AUROC in percent, mean and standard deviation over problems, by the ratio of labelled anomalies;
those with pollution have five percent of labelled anomalies. CatsVsDogs has two problems and no
standard deviation.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["image_paper_figure"]

_Figure = tuple[float, float | None]

_RATIOS = (0.0, 0.01, 0.05, 0.1, 0.2)

_LABELLED: Mapping[str, Mapping[str, tuple[_Figure | None, ...]]] = {
    "mnist": {
        "mml": ((94.2, 3.0), (97.3, 2.1), (97.8, 1.6), (97.8, 1.6), (97.9, 1.6)),
        "dp": ((94.2, 3.0), (97.0, 2.3), (97.5, 2.0), (97.6, 2.1), (97.9, 1.8)),
        "deep-sad": ((92.8, 4.9), (96.4, 2.7), (96.7, 2.4), (96.9, 2.3), (96.9, 2.4)),
        "ssad": ((96.0, 2.9), (96.6, 2.4), (93.3, 3.6), (90.7, 4.4), (87.2, 5.6)),
        "ssad-hybrid": ((96.3, 2.5), (96.8, 2.3), (97.4, 2.0), (97.6, 1.7), (97.8, 1.5)),
        "ss-dgm": (None, (89.9, 9.2), (92.2, 5.6), (91.6, 5.5), (91.2, 5.6)),
        "classifier": (None, (92.8, 5.5), (94.5, 4.6), (95.0, 4.7), (95.6, 4.4)),
        "oc-svm": ((96.0, 2.9), None, None, None, None),
        "oc-svm-hybrid": ((96.3, 2.5), None, None, None, None),
        "iforest": ((85.4, 8.7), None, None, None, None),
        "iforest-hybrid": ((90.5, 5.3), None, None, None, None),
        "kde": ((95.0, 3.3), None, None, None, None),
        "kde-hybrid": ((87.8, 5.6), None, None, None, None),
        "cae": ((92.9, 5.7), None, None, None, None),
        "deep-svdd": ((92.8, 4.9), None, None, None, None),
    },
    "fashion-mnist": {
        "mml": ((90.8, 4.6), (91.2, 6.6), (91.6, 6.3), (91.7, 6.4), (91.9, 6.0)),
        "dp": ((90.8, 4.6), (90.9, 6.7), (92.2, 4.6), (91.7, 6.0), (92.1, 5.7)),
        "deep-sad": ((89.2, 6.2), (90.0, 6.4), (90.5, 6.5), (91.3, 6.0), (91.0, 5.5)),
        "ssad": ((92.8, 4.7), (92.1, 5.0), (88.3, 6.2), (85.5, 7.1), (82.0, 8.0)),
        "ssad-hybrid": ((91.2, 4.7), (89.4, 6.0), (90.5, 5.9), (91.0, 5.6), (89.7, 6.6)),
        "ss-dgm": (None, (65.1, 16.3), (71.4, 12.7), (72.9, 12.2), (74.7, 13.5)),
        "classifier": (None, (74.4, 13.6), (76.8, 13.2), (79.0, 12.3), (81.4, 12.0)),
        "oc-svm": ((92.8, 4.7), None, None, None, None),
        "oc-svm-hybrid": ((91.2, 4.7), None, None, None, None),
        "iforest": ((91.6, 5.5), None, None, None, None),
        "iforest-hybrid": ((82.5, 8.1), None, None, None, None),
        "kde": ((92.0, 4.9), None, None, None, None),
        "kde-hybrid": ((69.7, 14.4), None, None, None, None),
        "cae": ((90.2, 5.8), None, None, None, None),
        "deep-svdd": ((89.2, 6.2), None, None, None, None),
    },
    "cifar10": {
        "mml": ((52.7, 10.7), (73.7, 7.3), (79.3, 7.2), (80.8, 7.7), (82.6, 7.2)),
        "dp": ((52.7, 10.7), (74.5, 8.4), (79.1, 8.0), (81.1, 8.1), (82.8, 7.3)),
        "deep-sad": ((60.9, 9.4), (72.6, 7.4), (77.9, 7.2), (79.8, 7.1), (81.9, 7.0)),
        "deep-sad-ill": ((59.8, 9.8), (59.4, 9.6), (58.8, 9.4), (58.4, 10.0), (56.9, 11.2)),
        "ssad": ((62.0, 10.6), (73.0, 8.0), (71.5, 8.1), (70.1, 8.1), (67.4, 8.8)),
        "ssad-hybrid": ((63.8, 9.0), (70.5, 8.3), (73.3, 8.4), (74.0, 8.1), (74.5, 8.0)),
        "ss-dgm": (None, (49.7, 1.7), (50.8, 4.7), (52.0, 5.5), (53.2, 6.7)),
        "classifier": (None, (55.6, 5.0), (63.5, 8.0), (67.7, 9.6), (80.5, 5.9)),
        "oc-svm": ((62.0, 10.6), None, None, None, None),
        "oc-svm-hybrid": ((63.8, 9.0), None, None, None, None),
        "iforest": ((60.0, 10.0), None, None, None, None),
        "iforest-hybrid": ((59.9, 6.7), None, None, None, None),
        "kde": ((59.9, 11.7), None, None, None, None),
        "kde-hybrid": ((56.1, 10.2), None, None, None, None),
        "cae": ((56.2, 13.2), None, None, None, None),
        "deep-svdd": ((60.9, 9.4), None, None, None, None),
    },
    "cats-vs-dogs": {
        "mml": ((50.7, None), (59.4, None), (68.4, None), (71.5, None), (73.3, None)),
        "dp": ((50.7, None), (64.0, None), (70.3, None), (75.3, None), (78.2, None)),
        "deep-sad": ((49.9, None), (54.1, None), (60.1, None), (64.4, None), (67.2, None)),
        "oc-svm": ((51.7, None), None, None, None, None),
        "oc-svm-hybrid": ((52.5, None), None, None, None, None),
    },
}

# With five percent of labelled anomalies, by the ratio of hidden ones. The paper's row for
# MNIST at 0.2 lacks a column; the figures of its last two columns are those given here.
_POLLUTED: Mapping[str, Mapping[str, tuple[_Figure, ...]]] = {
    "mnist": {
        "mml": ((97.8, 1.6), (94.7, 4.2), (91.8, 5.3), (89.3, 6.0), (85.4, 7.7)),
        "dp": ((97.5, 2.0), (95.7, 4.0), (93.9, 4.8), (92.3, 5.4), (88.8, 6.3)),
    },
    "fashion-mnist": {
        "mml": ((91.6, 6.3), (88.1, 9.8), (89.8, 7.5), (88.9, 11.2), (89.2, 8.3)),
        "dp": ((92.2, 4.6), (85.7, 10.6), (80.3, 13.4), (75.9, 15.7), (71.5, 17.4)),
        "deep-sad": ((90.5, 6.5), (87.2, 7.1), (81.5, 8.5), (78.2, 9.1), (74.8, 9.4)),
    },
    "cifar10": {
        "mml": ((79.3, 7.2), (76.9, 8.2), (75.3, 8.3), (73.5, 8.9), (71.0, 9.6)),
        "dp": ((79.1, 8.0), (78.5, 8.7), (76.8, 8.9), (75.2, 9.2), (72.2, 10.3)),
        "deep-sad": ((77.9, 7.2), (76.5, 7.2), (74.0, 6.9), (71.8, 7.0), (68.5, 7.1)),
    },
}


# Variants of DP-VAE on CIFAR-10 with one percent of labelled anomalies.
_ABLATION: Mapping[str, _Figure] = {
    "same-unfreeze": (73.9, 8.9),
    "separate-freeze": (50.0, 10.9),
    "separate-unfreeze": (49.8, 10.7),
}


def image_paper_figure(
    dataset: str, method: str, gamma_l: float, gamma_p: float, variant: str = ""
) -> _Figure | None:
    """Return the paper's figure for a cell, or None where it has none.

    Its VAE is the first column of either method, and has no other.

    Examples
    --------
    >>> image_paper_figure("fashion-mnist", "dp", 0.05, 0.0)
    (92.2, 4.6)
    >>> image_paper_figure("fashion-mnist", "vae", 0.0, 0.0)
    (90.8, 4.6)
    >>> image_paper_figure("fashion-mnist", "vae", 0.05, 0.0)
    >>> image_paper_figure("cifar10", "dp", 0.01, 0.0, "same-unfreeze")
    (73.9, 8.9)
    """
    if variant:
        is_known = (dataset, method, gamma_l, gamma_p) == ("cifar10", "dp", 0.01, 0.0)
        return _ABLATION.get(variant) if is_known else None
    if method == "vae" and gamma_l:
        return None
    name = "dp" if method == "vae" else method
    if gamma_p:
        row: tuple[_Figure | None, ...] | None = _POLLUTED.get(dataset, {}).get(name)
        ratio = gamma_p if gamma_l == 0.05 else None
    else:
        row, ratio = _LABELLED.get(dataset, {}).get(name), gamma_l
    if row is None or ratio not in _RATIOS:
        return None
    return row[_RATIOS.index(ratio)]
