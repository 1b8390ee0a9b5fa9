"""Any format and mode becomes bytes; what cannot be used has a reason."""

from __future__ import annotations

import io
import struct
import warnings
import zlib

import numpy as np
import pytest
from pictures import disc, encoded
from PIL import Image

from aloof.exceptions import ImageError
from aloof.imagery import look, strict_pillow
from aloof.models.images import decode

COLOURS = disc(np.random.default_rng(0), 20)


def bomb(width: int, height: int) -> bytes:
    """A PNG file that says it is huge, in a few bytes."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body))
            + kind
            + body
            + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


def file(image: Image.Image, format: str = "PNG", **options: object) -> bytes:
    content = io.BytesIO()
    image.save(content, format, **options)
    return content.getvalue()


def test_pixels_of_a_lossless_file_are_those_that_were_saved() -> None:
    pixels = decode(encoded(COLOURS), None, 3)
    assert pixels.dtype == np.uint8
    assert np.array_equal(pixels, COLOURS.transpose(2, 0, 1))


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "CMYK", "YCbCr", "I;16"])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_mode_becomes_bytes_of_the_asked_size(mode: str, channels: int) -> None:
    image = Image.fromarray(COLOURS)
    if mode == "I;16":
        values = np.asarray(image.convert("L")).astype(np.uint16) * 257
        image = Image.fromarray(values)
    else:
        image = image.convert(mode)
    content = file(image, "TIFF" if mode in ("CMYK", "YCbCr") else "PNG")
    pixels = decode(content, (8, 10), channels)
    assert pixels.shape == (channels, 8, 10)
    grey = np.asarray(Image.fromarray(COLOURS).convert("L").resize((10, 8), 1), float)
    assert np.abs(pixels.mean(0) - grey).mean() < (60 if mode == "1" else 20)


def test_sixteen_bits_keep_their_meaning() -> None:
    values = np.array([[0, 257 * 100], [257 * 200, 65535]], np.uint16)
    pixels = decode(file(Image.fromarray(values)), None, 1)
    assert pixels[0].tolist() == [[0, 100], [200, 255]]


def test_transparent_pixels_lie_on_white() -> None:
    layer = np.zeros((2, 2, 4), np.uint8)
    layer[0, 0] = (10, 20, 30, 255)
    pixels = decode(file(Image.fromarray(layer)), None, 3)
    assert pixels[:, 0, 0].tolist() == [10, 20, 30]
    assert pixels[:, 1, 1].tolist() == [255, 255, 255]


def test_a_palette_may_be_transparent() -> None:
    image = Image.fromarray(COLOURS).convert("P")
    with strict_pillow():
        pixels = decode(file(image, transparency=bytes([0] * 256)), None, 3)
    assert (pixels == 255).all()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["PNG", "JPEG"])
def test_images_are_turned_the_right_way_up(format: str, orientation: int) -> None:
    from PIL import ImageOps

    image = Image.fromarray(COLOURS[:12])
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = file(image, format, exif=exif)
    expected = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    pixels = decode(content, None, 3)
    assert np.array_equal(pixels.transpose(1, 2, 0), np.asarray(expected))
    assert look(content).size == pixels.shape[1:]


def test_shrinking_averages() -> None:
    board = np.indices((64, 64)).sum(0) % 2 * np.uint8(255)
    pixels = decode(encoded(board.astype(np.uint8)), (8, 8), 1)
    assert np.abs(pixels.astype(int) - 127).max() < 8


def test_a_large_jpeg_shrinks_to_what_all_of_it_would() -> None:
    y, x = np.mgrid[:512, :512] / 512
    large = (255 * np.stack([x, y, x * y], -1)).astype(np.uint8)
    pixels = decode(encoded(large, "JPEG", quality=95), (32, 32), 3)
    exact = np.asarray(Image.fromarray(large).resize((32, 32), Image.Resampling.LANCZOS))
    assert np.abs(pixels.transpose(1, 2, 0).astype(int) - exact).max() <= 8


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"just some text", "not an image in a format"),
        (encoded(COLOURS, "JPEG")[:-300], "cut off or damaged"),
        (encoded(COLOURS)[:200], "cut off or damaged"),
        (bomb(30_000, 30_000), "the limit is 89,478,485"),
        (bomb(10_000, 10_000), "the limit is 89,478,485"),
        (bomb(0, 0), "cut off or damaged|not an image"),
        (file(Image.fromarray(np.full((2, 2), 3.5, np.float32)), "TIFF"), "pixels from 3.5"),
    ],
)
def test_what_cannot_be_used_has_a_reason(content: bytes, words: str) -> None:
    with strict_pillow(), pytest.raises(ImageError, match=words):
        decode(content, (8, 8), 3)


def test_a_bomb_is_never_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import ImageFile

    def decoded(*_: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", decoded)
    for read in (look, lambda content: decode(content, (8, 8), 3)):
        with strict_pillow(), pytest.raises(ImageError, match="claims to have"):
            read(bomb(30_000, 30_000))


def test_the_filters_of_warnings_are_left_as_they_were() -> None:
    before = list(warnings.filters)
    with strict_pillow():
        pass
    assert warnings.filters == before
