"""Images as features of networks that know the world."""

from aloof.vision.backbones import (
    NONE,
    PACKAGED,
    Backbone,
    BackboneFacts,
    installed_backbone,
    load_backbone,
)

__all__ = [
    "NONE",
    "PACKAGED",
    "Backbone",
    "BackboneFacts",
    "installed_backbone",
    "load_backbone",
]
