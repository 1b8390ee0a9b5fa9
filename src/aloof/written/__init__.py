"""What is written in text: files, and cells one at a time. Needs nothing but Python.

How many cells are read at once, and how the rules are found out, is in `aloof.models.table`;
what one cell means by these rules is said here, once, for that and for `aloof.lite`.
"""

from aloof.written.cells import clean_text, means_nothing
from aloof.written.numbers import read_number
from aloof.written.times import read_time

__all__ = ["clean_text", "means_nothing", "read_number", "read_time"]
