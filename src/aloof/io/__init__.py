"""Files: written whole or not at all, and read with care."""

from aloof.io.atomic import replacing, write_file, writing
from aloof.io.tensors import parse_tensors, save_tensors

__all__ = ["parse_tensors", "replacing", "save_tensors", "write_file", "writing"]
