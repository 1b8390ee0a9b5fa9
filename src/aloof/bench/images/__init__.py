"""Image sets: one class is normal, a few images of another are labelled anomalies."""

from aloof.bench.images.settings import PAPER_NETWORKS
from aloof.bench.images.specification import (
    ImageCase,
    ImageSpecification,
    image_systems,
)
from aloof.bench.images.study import ImageStudy, make_images, plan_chunks

__all__ = [
    "PAPER_NETWORKS",
    "ImageCase",
    "ImageSpecification",
    "ImageStudy",
    "image_systems",
    "make_images",
    "plan_chunks",
]
