"""Images: folders and archives in, as bytes; models of them."""

from aloof.images.decoding import decode
from aloof.images.fitting import fit_images
from aloof.images.folders import Collection, Skipped, open_images
from aloof.images.idx import read_idx
from aloof.images.model import ImageExplanation, ImageModel, ImageScores
from aloof.images.reading import ImageSet, read_images

__all__ = [
    "Collection",
    "ImageExplanation",
    "ImageModel",
    "ImageScores",
    "ImageSet",
    "Skipped",
    "decode",
    "fit_images",
    "open_images",
    "read_idx",
    "read_images",
]
