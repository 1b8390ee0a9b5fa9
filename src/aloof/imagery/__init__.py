"""Image files: where they lie, which pages they have, and their pixels as bytes."""

from aloof.imagery.decoding import (
    MOST_PIXELS,
    Channels,
    Look,
    decode,
    decode_whole,
    look,
    n_pages,
    pillow,
    strict_pillow,
)
from aloof.imagery.folders import Collection, Reader, Skipped, open_images
from aloof.imagery.pages import page_of, paged, without_page

__all__ = [
    "MOST_PIXELS",
    "Channels",
    "Collection",
    "Look",
    "Reader",
    "Skipped",
    "decode",
    "decode_whole",
    "look",
    "n_pages",
    "open_images",
    "page_of",
    "paged",
    "pillow",
    "strict_pillow",
    "without_page",
]
