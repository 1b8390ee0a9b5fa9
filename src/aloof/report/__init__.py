"""What people look at: pictures of a fitted model, and a report about a table."""

from aloof.report.figures import (
    check_drawing,
    latent_map,
    plot_roc,
    save_figure,
    score_histograms,
)
from aloof.report.html import check_report, write_report
from aloof.report.images import write_image_report

__all__ = [
    "check_drawing",
    "check_report",
    "latent_map",
    "plot_roc",
    "save_figure",
    "score_histograms",
    "write_image_report",
    "write_report",
]
