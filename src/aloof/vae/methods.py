"""The methods of the paper: one record each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["METHODS", "Method", "MethodRecord"]

Method = Literal["vae", "mml", "dp", "mml-dp"]


@dataclass(frozen=True)
class MethodRecord:
    """A method.

    Attributes
    ----------
    title
        What the paper calls it.
    attracts
        Whether labelled anomalies are drawn to a prior of their own.
    repels
        Whether their likelihood is pushed down, through the CUBO.
    """

    title: str
    attracts: bool = False
    repels: bool = False

    @property
    def uses_labels(self) -> bool:
        """Whether labelled anomalies are more than rows to leave out."""
        return self.attracts or self.repels


METHODS: Mapping[str, MethodRecord] = {
    "vae": MethodRecord("VAE"),
    "mml": MethodRecord("MML-VAE", repels=True),
    "dp": MethodRecord("DP-VAE", attracts=True),
    "mml-dp": MethodRecord("MML-DP-VAE", attracts=True, repels=True),
}
"""By the name that commands and files use."""
