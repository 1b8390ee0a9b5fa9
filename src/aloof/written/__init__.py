"""What is written in text: files, and cells one at a time. Needs nothing but Python.

How many cells are read at once, and how the rules are found out, is in `aloof.models.table`;
what one cell means by these rules is said here, once, for that and for `aloof.lite`.
"""
