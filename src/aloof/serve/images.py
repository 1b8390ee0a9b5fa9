"""Images: files as they are, several in one form, or base64 in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import ImageError
from aloof.imagery import Channels, Look, decode_whole, look, n_pages
from aloof.models.images import ImageModel
from aloof.models.images.reading import ImageSet
from aloof.serve.forms import FORM, read_form
from aloof.serve.limits import Limits, Refused
from aloof.serve.recent import Recent
from aloof.serve.served import (
    Asked,
    Content,
    Rows,
    Scored,
    Served,
    Tensor,
    from_base64,
    parsed,
)

__all__ = ["ImageRows", "ServedImages"]

_JSON = "application/json"
_KINDS = ("image/png", "image/jpeg", "image/webp", "image/bmp", "image/tiff")
_REHEARSED = 4


@dataclass(frozen=True)
class ImageRows(Rows):
    """Images in the size of the model.

    Attributes
    ----------
    pixels
        ``(n, channels, height, width)``, bytes.
    names
        Of the files; None: they have none.
    looks
        What the headers of the files said; empty: there were none.
    """

    pixels: NDArray[np.uint8] = field(repr=False)
    names: list[str] | None = None
    looks: tuple[Look, ...] = ()


class ServedImages(Served[ImageRows]):
    """A model of images in use; see `Served`."""

    takes = (*_KINDS, FORM, _JSON)
    model: ImageModel

    def __init__(self, model: ImageModel, limits: Limits) -> None:
        super().__init__(model, limits)
        self._recent: Recent[ImageRows] = Recent()

    def read(self, content: Content, asked: Asked) -> ImageRows:
        """Return the images of a body."""
        _check(asked)
        if content.kind in _KINDS:
            return self._decoded([content.data], None, asked)
        if content.kind == FORM:
            files = read_form(content, self.limits.rows)
            self.limits.check_rows(len(files))
            return self._decoded([f.data for f in files], [f.name for f in files], asked)
        if content.kind != _JSON:
            raise self._not_taken(content)
        value = parsed(content.data)
        files64 = value.get("images") if isinstance(value, dict) and len(value) == 1 else None
        if not isinstance(files64, list):
            raise Refused(422, 'Send {"images": ["an image file in base64", ...]}.')
        self.limits.check_rows(len(files64))
        return self._decoded([from_base64(text) for text in files64], None, asked)

    def _decoded(
        self, files: Sequence[bytes], names: list[str] | None, asked: Asked
    ) -> ImageRows:
        channels, height, width = self.model.shape
        depth: Channels = 1 if channels == 1 else 3
        pixels = np.empty((len(files), *self.model.shape), np.uint8)
        looks = []
        for place, file in enumerate(files):
            try:
                size = look(file).size
                if size[0] * size[1] > self.limits.pixels:
                    raise Refused(
                        413, f"An image may have at most {self.limits.pixels:,} pixels."
                    )
                if (n := len(n_pages(file))) > 1:
                    raise ImageError(f"has {n} pages; send each as an image of its own")
                pixels[place], seen = decode_whole(
                    file,
                    (height, width),
                    depth,
                    keeps_proportions=self.model.view is not None,
                )
            except ImageError as error:
                raise ImageError(f"Image {place + 1} {error}.") from error
            looks.append(seen)
        return ImageRows(len(files), asked, pixels, names, tuple(looks))

    def score(self, requests: Sequence[ImageRows]) -> list[Scored | Exception]:
        """Return what there is to say about each request."""
        pixels = [request.pixels for request in requests]
        scores = self.model.anomaly_score(
            pixels[0] if len(pixels) == 1 else np.concatenate(pixels)
        )
        answers: list[Scored | Exception] = []
        begin = 0
        for request in requests:
            names = None if request.names is None else ("file", request.names)
            answers.append(self._scored(scores[begin : begin + request.n], names))
            begin += request.n
        for request in requests:
            if request.looks:
                self._recent.add(request, request.n, request.pixels.nbytes)
        return answers

    def inputs(self) -> list[dict[str, Any]]:
        """Return one input: pixels in the size of the model."""
        return [{"name": "images", "datatype": "UINT8", "shape": [-1, *self.model.shape]}]

    def read_tensors(self, tensors: Sequence[Tensor], asked: Asked) -> ImageRows:
        """Return images as pixels, or as files."""
        _check(asked)
        (first, *others) = tensors
        if others:
            raise Refused(422, "Send one tensor of images.")
        self.limits.check_rows(first.shape[0] if first.shape else 0)
        if first.datatype == "BYTES":
            files = first.data.reshape(-1).tolist()
            raw = [f if isinstance(f, bytes) else from_base64(f) for f in files]
            return self._decoded(raw, None, asked)
        shape = tuple(self.model.shape)
        if first.shape[1:] != shape or first.datatype not in ("UINT8", "FP32", "FP64"):
            raise Refused(
                422,
                f"Send bytes (UINT8), or numbers from 0 to 1 (FP32), of shape [n, "
                f"{', '.join(map(str, shape))}].",
            )
        pixels = first.data
        if first.datatype != "UINT8":
            if not (np.isfinite(pixels).all() and pixels.min() >= 0 and pixels.max() <= 1):
                raise Refused(422, "Pixels that are no bytes must be from 0 to 1.")
            pixels = np.rint(pixels * 255).astype(np.uint8)
        return ImageRows(len(pixels), asked, pixels)

    def example(self) -> Any:
        """Return one black image."""
        import base64

        from aloof.models.images.panels import png

        black = np.zeros((*self.model.shape[1:], 3), np.uint8)
        return {"images": [base64.b64encode(png(black)).decode()]}

    def row_schema(self) -> dict[str, Any]:
        """Return the schema of an image."""
        return {"type": "string", "contentEncoding": "base64"}

    def rehearsal(self) -> list[ImageRows]:
        """Return images of noise."""
        rng = np.random.default_rng(0)
        noise = rng.integers(0, 256, (_REHEARSED, 1, *self.model.shape), np.uint8)
        return [ImageRows(1, Asked(), pixels) for pixels in noise]

    def forget(self) -> None:
        """Forget the latest images."""
        self._recent.clear()

    def drift(self) -> list[str]:
        """Return kinds of differences between the latest images and those of the training."""
        recent = self._recent.all()
        if not recent:
            return []
        pixels = np.concatenate([request.pixels for request in recent])
        names = tuple(map(str, range(len(pixels))))
        looks = tuple(seen for request in recent for seen in request.looks)
        origins = np.zeros(len(pixels), np.int64)
        found = ImageSet(pixels, names, ("",) * len(pixels), origins, (), (), looks)
        return [each.what for each in self.model.drift(found)]


def _check(asked: Asked) -> None:
    if asked.reasons or asked.fills or asked.ignores_rules:
        raise Refused(
            422, "A model of images gives no reasons, and has no columns to fill and no rules."
        )
