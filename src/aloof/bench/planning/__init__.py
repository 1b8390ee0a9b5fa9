"""Motion planning: networks that learn where not to sample."""

from aloof.bench.planning.specification import PlanningSpecification, Sampler
from aloof.bench.planning.study import PlanningCase, PlanningStudy, make_planning

__all__ = [
    "PlanningCase",
    "PlanningSpecification",
    "PlanningStudy",
    "Sampler",
    "make_planning",
]
