"""What an exported file holds besides its graph, and how to tell that it is whole.

The file is an ONNX model. Its notes (``metadata_props``) say under `NOTES` what its inputs
are, as JSON, and under `DIGEST` what the bytes of the file add up to. The digest is looked for
in the bytes alone: no ONNX package is needed, and nothing is run that was changed.
"""

from __future__ import annotations

import hashlib
import re

__all__ = ["BLANK", "DIGEST", "NOTES", "SAME", "VERSION", "digest_of", "stamped"]

VERSION = 1  # of the notes

NOTES, DIGEST = "aloof", "aloof.digest"

# Scores that differ by no more than this share are the same: those of one row, computed by
# different libraries, do.
SAME = 1e-6

BLANK = "0" * 64
# In a protocol buffer, a key is followed by its value: a tag, a length of 64, and the digits.
_STAMP = re.compile(re.escape(DIGEST).encode() + rb"\x12@([0-9a-f]{64})")


def stamped(content: bytes) -> bytes:
    """Return the bytes of a model, whose digest is `BLANK`, with the right one."""
    found = _stamp(content)
    assert found is not None
    assert found[1] == BLANK.encode()
    digest = hashlib.sha256(content).hexdigest().encode()
    return content[: found.start(1)] + digest + content[found.end(1) :]


def digest_of(content: bytes) -> tuple[str, str] | None:
    """Return the digest that a file has and the one that it should have.

    None: it has none, and was not written by aloof.
    """
    found = _stamp(content)
    if found is None:
        return None
    blank = content[: found.start(1)] + BLANK.encode() + content[found.end(1) :]
    return found[1].decode(), hashlib.sha256(blank).hexdigest()


def _stamp(content: bytes) -> re.Match[bytes] | None:
    """Return where the digest is: the last that looks like one, for notes come at the end."""
    found = None
    for found in _STAMP.finditer(content):  # noqa: B007
        pass
    return found
