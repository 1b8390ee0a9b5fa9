"""What people look at: pictures of a fitted model."""

from aloof.report.figures import (
    latent_map,
    plot_roc,
    save_figure,
    score_histograms,
)

__all__ = ["latent_map", "plot_roc", "save_figure", "score_histograms"]
