"""Images: folders and archives in, as bytes; models of them."""

from aloof.imagery import Collection, Skipped, decode, open_images
from aloof.models.images.fitting import are_images, fit_images
from aloof.models.images.idx import read_idx
from aloof.models.images.labels import ImageLabels
from aloof.models.images.model import ImageExplanation, ImageModel, ImageScores
from aloof.models.images.reading import ImageSet, read_images

__all__ = [
    "Collection",
    "ImageExplanation",
    "ImageLabels",
    "ImageModel",
    "ImageScores",
    "ImageSet",
    "Skipped",
    "are_images",
    "decode",
    "fit_images",
    "open_images",
    "read_idx",
    "read_images",
]
