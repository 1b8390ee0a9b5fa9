"""A word to torch's compiler, said without importing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["constant"]

_F = TypeVar("_F", bound=Callable[..., object])


def constant(function: _F) -> _F:
    """Do what `torch.compiler.assume_constant_result` does: results are constants to it.

    That function imports all of the compiler to set this attribute, and would make a third
    of the time that it takes to import this package.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function
