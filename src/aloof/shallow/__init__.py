"""Shallow views of rows of numbers, as arrays: trees and nearest neighbours."""

from aloof.shallow.forest import Forest
from aloof.shallow.neighbours import NOISE, Neighbours

__all__ = ["NOISE", "Forest", "Neighbours"]
