"""Files: written whole or not at all, and read with care."""

from aloof.io.atomic import check_file, replacing, write_file, writing

__all__ = ["check_file", "replacing", "write_file", "writing"]
