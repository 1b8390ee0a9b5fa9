"""``aloof bench``: the paper's tables and figures, run here."""

from aloof.cli.bench.app import bench

__all__ = ["bench"]
