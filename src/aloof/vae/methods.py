"""The methods of the paper: one record each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aloof.vae.terms import AnomalyTerm, attraction, pushing

__all__ = ["METHODS", "Method", "MethodRecord"]

Method = Literal["vae", "mml", "dp", "mml-dp"]


@dataclass(frozen=True)
class MethodRecord:
    """A method.

    Attributes
    ----------
    title
        What the paper calls it.
    terms
        What is minimised on labelled anomalies, beside the ELBO of normal rows; none: they
        are left out.
    attracts
        Whether anomalies are drawn to a prior of their own, so that a direction leads there.
    """

    title: str
    terms: tuple[AnomalyTerm, ...] = ()
    attracts: bool = False

    @property
    def uses_labels(self) -> bool:
        """Whether labelled anomalies are more than rows to leave out."""
        return bool(self.terms)


METHODS: dict[str, MethodRecord] = {
    "vae": MethodRecord("VAE"),
    "mml": MethodRecord("MML-VAE", (pushing,)),
    "dp": MethodRecord("DP-VAE", (attraction,), attracts=True),
    "mml-dp": MethodRecord("MML-DP-VAE", (pushing, attraction), attracts=True),
}
"""By the name that commands and files use. A method from elsewhere is one more entry."""
