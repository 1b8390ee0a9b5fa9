"""Images as features of networks, which know the world or learned from the images."""

from aloof.vision.backbones import (
    NONE,
    PACKAGED,
    Backbone,
    BackboneFacts,
    installed_backbone,
    load_backbone,
)
from aloof.vision.pretext import PRETEXTS
from aloof.vision.selfmade import learn_backbone

__all__ = [
    "NONE",
    "PACKAGED",
    "PRETEXTS",
    "Backbone",
    "BackboneFacts",
    "installed_backbone",
    "learn_backbone",
    "load_backbone",
]
