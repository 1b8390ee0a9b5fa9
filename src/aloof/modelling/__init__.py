"""What models of tables and of images have in common."""

from aloof.modelling.fitting import check_choices, fit_detector, hold_out
from aloof.modelling.model import Model

__all__ = ["Model", "check_choices", "fit_detector", "hold_out"]
