"""Changes to methods that a study is about: their parameters, and the networks of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from torch import nn

from aloof.bench.methods import OURS, check_overrides, peers
from aloof.bench.residual import ResidualDecoder, ResidualEncoder
from aloof.bench.specification import known, several
from aloof.estimators import Detector
from aloof.io.sections import Section
from aloof.networks import MLPDecoder, MLPEncoder

__all__ = [
    "MLP",
    "Named",
    "Network",
    "Variant",
    "Variants",
    "check_variants",
    "distinct_variants",
    "given_variants",
    "variant_named",
    "variants_of",
]

_V = TypeVar("_V", bound="Variant")


class Named(Protocol):
    """A change to methods, with a name: `Variant`, or that of another study."""

    @property
    def name(self) -> str:
        """Empty for the methods as they are."""
        ...

    def concerns(self, method: str) -> bool:
        """Return whether a method has it."""
        ...


class Network(Section):
    """The networks of our methods: options of `aloof.networks.MLPEncoder`, with its defaults.

    Attributes
    ----------
    slope, normalise, bias
        As there.
    residual
        Residual blocks in place of layers; then there are biases and no normalisation.
    """

    slope: float = 0.1
    normalise: bool = False
    bias: bool = True
    residual: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.residual and (self.normalise or not self.bias):
            raise ValueError("residual networks have biases and no normalisation.")
        return self

    def given_to(self, detector: Detector) -> Detector:
        """Give an unfitted detector these networks; its own are left as they are."""
        if self == Network():
            return detector
        hidden, variance = detector.hidden, detector.likelihood == "gaussian"
        if self.residual and variance:
            raise ValueError("residual networks learn no variance: likelihood='gaussian'.")
        options = self.model_dump()
        detector.encoder = MLP("encoder", hidden, **options)
        detector.decoder = MLP("decoder", hidden, variance, **options)
        return detector


@dataclass(frozen=True)
class MLP:
    """A factory of networks that equals any other with the same options, so that they stack.

    Attributes
    ----------
    part
        Which of the two networks.
    hidden, learn_variance, slope, normalise, bias, residual
        Options of it.
    """

    part: Literal["encoder", "decoder"]
    hidden: tuple[int, ...]
    learn_variance: bool = False
    slope: float = 0.1
    normalise: bool = False
    bias: bool = True
    residual: bool = False

    def __call__(self, shape: tuple[int, ...], latent_dim: int) -> nn.Module:
        """Return a network for rows of `shape` and a latent space of `latent_dim`."""
        if self.residual:
            kind = ResidualEncoder if self.part == "encoder" else ResidualDecoder
            return kind(shape, latent_dim, self.hidden, self.slope)
        options: dict[str, Any] = {
            "slope": self.slope,
            "normalise": self.normalise,
            "bias": self.bias,
        }
        if self.part == "encoder":
            return MLPEncoder(shape, latent_dim, self.hidden, **options)
        options["learn_variance"] = self.learn_variance
        return MLPDecoder(shape, latent_dim, self.hidden, **options)


def _with_variants(names: tuple[str, ...]) -> tuple[str, ...]:
    return known("method", [*OURS, *peers()])(names)


class Variant(Section):
    """A change to methods that a study is about.

    Attributes
    ----------
    name
        Empty for the methods as they are.
    parameters
        Of the estimator, in place of the setting's.
    network
        Of our methods, in place of the setting's; what is missing is as in the estimators' own.
    methods
        Which methods it is of; none: all of ours.
    """

    name: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    network: Network | None = None
    methods: Annotated[
        tuple[str, ...], BeforeValidator(several), AfterValidator(_with_variants)
    ] = ()

    def concerns(self, method: str) -> bool:
        """Return whether a method has this variant."""
        return method in (self.methods or OURS)


def given_variants(value: Any) -> Any:
    """Return what is given as variants; nothing: the methods as they are."""
    return several(value) or ({"name": ""},)


def distinct_variants(variants: tuple[_V, ...]) -> tuple[_V, ...]:
    """Return variants; each must have a name of its own."""
    names = [variant.name for variant in variants]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Two variants are called {name!r}.")
    return variants


Variants = Annotated[
    tuple[Variant, ...], BeforeValidator(given_variants), AfterValidator(distinct_variants)
]


def check_variants(variants: Iterable[Variant], methods: Iterable[str]) -> None:
    """Raise an error for what a method does not have.

    Parameters
    ----------
    variants
        Of a study.
    methods
        That run. Those that a variant names are checked, too: they may run another time.
    """
    running = tuple(methods)
    for variant in variants:
        for method in dict.fromkeys([*running, *variant.methods]):
            if not variant.concerns(method):
                continue
            check_overrides(method, variant.parameters)
            if variant.network is not None and method not in OURS:
                raise ValueError(
                    f"the variant {variant.name!r} has a network, which only our methods "
                    f"take; {method!r} is a peer."
                )


def variants_of(method: str, variants: Sequence[Named]) -> list[str]:
    """Return the names of a method's variants; a method that none concerns runs as it is."""
    return [variant.name for variant in variants if variant.concerns(method)] or [""]


def variant_named(name: str, method: str, variants: Sequence[_V]) -> _V | None:
    """Return the variant of a method that has this name; None: the method as it is."""
    for variant in variants:
        if variant.name == name and variant.concerns(method):
            return variant
    if name:
        raise LookupError(f"The method {method!r} has no variant {name!r}.")
    return None
