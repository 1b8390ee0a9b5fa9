"""What to simulate: which tables, who asks, and how many questions."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from aloof.bench.specification import Count, Names, Specification, known
from aloof.bench.tabular.development import DEVELOPMENT
from aloof.datasets import PublicTable, list_datasets
from aloof.feedback.asking import WAYS
from aloof.feedback.refitting import CONFIRMED_WEIGHT

__all__ = ["ASKERS", "FOREST", "NEVER", "RANDOM", "ReviewSpecification"]

NEVER, RANDOM, FOREST = "never refitted", "random", "isolation forest"
ASKERS = (*WAYS, RANDOM, NEVER, FOREST)
_TABLES = ("arrhythmia", "cardio", "satellite", "satimage-2", "shuttle", "thyroid")


class ReviewSpecification(Specification):
    """Options of ``aloof bench review``.

    Attributes
    ----------
    datasets
        Public tables, or development tasks of ``aloof bench tabular``.
    askers
        Ways of asking with refits between, ``random`` asking with refits, ``never refitted``
        (the most anomalous rows of a plain VAE) and ``isolation forest`` with feedback.
    seeds
        Reviews of each, from 0, 1, ... on: other halves of the table, other networks.
    questions, batch
        How many are asked, and after how many there is a refit.
    compared_at
        After so many questions of the default way, it is compared with a fresh fit that has
        the same labels.
    max_rows
        Of a table, drawn at random; half of them are reviewed, half are to measure with.
    max_share
        Most anomalies among the rows; others are left out. None: as many as there are.
    members
        Of the ensemble.
    max_epochs
        Of a fit; None: as many as the size asks for.
    confirmed_weight
        How often a row answered as normal is seen.
    """

    title: str = "How much an answer is worth"
    datasets: Annotated[
        Names,
        AfterValidator(
            known("data set", [*(d.name for d in list_datasets(PublicTable)), *DEVELOPMENT])
        ),
    ] = _TABLES
    askers: Annotated[Names, AfterValidator(known("asker", ASKERS))] = ASKERS
    seeds: Count = 10
    questions: Count = 50
    batch: Count = 10
    compared_at: Count = 20
    max_rows: Count = 4000
    max_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    members: Count = 5
    max_epochs: Count | None = None
    confirmed_weight: Count = CONFIRMED_WEIGHT

    @model_validator(mode="after")
    def _check(self) -> ReviewSpecification:
        if self.questions % self.batch or self.compared_at % self.batch:
            raise ValueError("questions and compared_at must be multiples of batch.")
        return self
