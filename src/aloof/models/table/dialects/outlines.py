"""Text by its outline: all digits are 9, so that many numbers and dates look the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["outlined"]

_SAME = np.arange(256, dtype=np.uint8)
_SAME[48:58] = 57


def outlined(text: pa.Array) -> pa.Array:
    """Return text with all digits the same."""
    text = pa.concat_arrays([text]) if text.offset else text
    kept, offsets, data = text.buffers()
    if data is None:
        return text
    changed = _SAME[np.frombuffer(data, np.uint8)]
    return pa.StringArray.from_buffers(
        len(text), offsets, pa.py_buffer(changed), kept, text.null_count
    )
