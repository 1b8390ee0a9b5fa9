"""What people look at: pictures of a fitted model."""

from aloof.report.figures import (
    check_drawing,
    latent_map,
    plot_roc,
    save_figure,
    score_histograms,
)

__all__ = ["check_drawing", "latent_map", "plot_roc", "save_figure", "score_histograms"]
