"""Shallow views of rows of numbers, as arrays: trees and nearest neighbours."""

from aloof.shallow.forest import Forest
from aloof.shallow.neighbours import Neighbours

__all__ = ["Forest", "Neighbours"]
