"""Scores and training on a Ray cluster."""

from aloof.ray.fitting import fit_many
from aloof.ray.pool import RayPool, WorkerDied
from aloof.ray.scoring import folder_pool, score

__all__ = ["RayPool", "WorkerDied", "fit_many", "folder_pool", "score"]
