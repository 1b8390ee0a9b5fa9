"""Pages and pictures: what all reports about a model share, and figures to look at."""

from aloof.report.figures import (
    check_drawing,
    image_pairs,
    latent_map,
    plot_roc,
    save_figure,
    score_histograms,
)
from aloof.report.findings import Findings, Tally

__all__ = [
    "Findings",
    "Tally",
    "check_drawing",
    "image_pairs",
    "latent_map",
    "plot_roc",
    "save_figure",
    "score_histograms",
]
