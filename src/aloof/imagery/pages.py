"""Pages of TIFF files: each is an image, called as the file is, with its number behind it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aloof.exceptions import ImageError
from aloof.imagery.decoding import n_pages

if TYPE_CHECKING:
    from aloof.imagery.folders import Reader

__all__ = ["page_of", "paged", "without_page"]

_PAGE = re.compile(r"(.*\.tiff?)#([1-9][0-9]{0,5})", re.IGNORECASE | re.DOTALL)
_MAY_HAVE_PAGES = (".tif", ".tiff")


def paged(name: str, reader: Reader) -> list[str]:
    """Return the names of the pages of a file, as in ``scan.tif#2``; of one page its own.

    Parameters
    ----------
    name
        Of the file.
    reader
        What opens it.
    """
    if not name.lower().endswith(_MAY_HAVE_PAGES):
        return [name]
    try:
        with reader(name) as file:
            pages = n_pages(file)
    except ImageError:  # whoever decodes it says why
        return [name]
    return [name] if len(pages) == 1 else [f"{name}#{page}" for page in pages]


def page_of(name: str) -> int:
    """Return the number of the page that a name is of, from 1."""
    match = _PAGE.fullmatch(name)
    return int(match[2]) if match else 1


def without_page(name: str) -> str:
    """Return the name of the file that has this page.

    Examples
    --------
    >>> without_page("day/scan.tif#2"), without_page("part#2.png")
    ('day/scan.tif', 'part#2.png')
    """
    match = _PAGE.fullmatch(name)
    return match[1] if match else name
