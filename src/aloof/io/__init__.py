"""Files: written whole or not at all, and read with care."""

from aloof.io.atomic import replacing, write_file, writing

__all__ = ["replacing", "write_file", "writing"]
