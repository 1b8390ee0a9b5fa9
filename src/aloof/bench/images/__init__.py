"""Image sets: one class is normal, a few images of another are labelled anomalies."""

from aloof.bench.images.settings import PAPER_NETWORKS
from aloof.bench.images.specification import (
    IMAGE_SYSTEMS,
    UNSUPERVISED,
    ImageCase,
    ImageSpecification,
)
from aloof.bench.images.study import ImageStudy, make_images, plan_chunks

__all__ = [
    "IMAGE_SYSTEMS",
    "PAPER_NETWORKS",
    "UNSUPERVISED",
    "ImageCase",
    "ImageSpecification",
    "ImageStudy",
    "make_images",
    "plan_chunks",
]
