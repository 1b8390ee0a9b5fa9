"""Images: folders and archives in, as bytes; models of them."""

from aloof.images.decoding import decode
from aloof.images.fitting import are_images, fit_images
from aloof.images.folders import Collection, Skipped, open_images
from aloof.images.idx import read_idx
from aloof.images.labels import ImageLabels
from aloof.images.model import ImageExplanation, ImageModel, ImageScores
from aloof.images.reading import ImageSet, read_images

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
