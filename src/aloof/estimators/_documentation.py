"""Docstrings of classes that inherit parameters: ``help`` shows all of them."""

from __future__ import annotations

import inspect
import re

__all__ = ["inherit_sections"]


def inherit_sections(cls: type, *names: str) -> None:
    """Put what base classes say under these headings into a class's own docstring.

    What a class says itself comes first, and stands for what its bases say of the same. Its
    docstring as it was written is kept in ``_own_doc``.

    Parameters
    ----------
    cls
        The class.
    names
        Headings of a NumPy-style docstring, in their order.
    """
    own = cls.__dict__.get("__doc__")
    if own is None:  # as with python -OO
        return
    cls._own_doc = own  # type: ignore[attr-defined]
    sections = _sections(own)
    opening = sections.pop("")
    inherited: dict[str, str] = {}
    for name in names:
        entries = _entries(sections.pop(name, ""))
        for base in cls.__mro__[1:]:
            if base is object or not base.__module__.startswith("aloof."):
                continue
            words = base.__dict__.get("_own_doc", base.__dict__.get("__doc__")) or ""
            for heading, text in _entries(_sections(words).get(name, "")).items():
                entries.setdefault(heading, text)
        if entries:
            inherited[name] = "\n".join(entries.values())
    written = [opening]
    for name, text in {**inherited, **sections}.items():
        written.append(f"{name}\n{'-' * len(name)}\n{text}")
    cls.__doc__ = "\n\n".join(written) + "\n"


def _entries(text: str) -> dict[str, str]:
    """Return what is said under the names that begin in the first column, by these."""
    parts = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    return {part.partition("\n")[0]: part.rstrip() for part in parts if part}


def _sections(doc: str) -> dict[str, str]:
    """Return the text under each heading; what comes before the first is under ""."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.cleandoc(doc), flags=re.MULTILINE)
    found = {"": parts[0].rstrip()}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        found[heading] = text.rstrip()
    return found
