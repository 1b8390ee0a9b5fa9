"""The experiments that fill the paper's tables: the files there are, and their cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

from aloof.bench.paper.cells import Want
from aloof.bench.paper.kinds import KINDS, Fields, Kind
from aloof.bench.specification import specify
from aloof.exceptions import ExperimentError

__all__ = ["Experiment", "read_experiments"]

# Which files are about the paper's tables; others are there to try.
_COUNT = {"images": "images-*", "odds": "odds-*", "text": "text", "planning": "planning"}


@dataclass(frozen=True, eq=False)
class Experiment:
    """The file of an experiment.

    Attributes
    ----------
    name
        Of the file, and of the folder of its results.
    path
        The file.
    kind
        Of its study.
    spec
        What it says.
    stretched
        What is asked for beside it.
    """

    name: str
    path: Path
    kind: Kind
    spec: Any
    stretched: Mapping[str, tuple[str, ...]]

    @cached_property
    def cases(self) -> dict[Want, list[Fields]]:
        """Every case, by the cells it belongs to."""
        found: dict[Want, list[Fields]] = {}
        for case in self.kind.cases(self.spec):
            found.setdefault(self.kind.want(case), []).append(case)
        return found

    def with_options(self, options: Mapping[str, Any]) -> Experiment:
        """Return the experiment with options beside its file."""
        own = self.spec.__class__
        spec = specify(own, {"name": self.name, **options}, file=self.path)
        return Experiment(self.name, self.path, self.kind, spec, dict(options))

    def stretch(self) -> Experiment:
        """Return the experiment in all settings, whichever the file names."""
        known = self.spec.__class__.model_fields
        options = {k: v for k, v in self.kind.stretch.items() if k in known}
        return self.with_options(options)


def read_experiments(folder: Path) -> tuple[Experiment, ...]:
    """Read the files of a folder that are about the paper's tables.

    Raises
    ------
    ExperimentError
        Where there is none, or one is not right.
    """
    found = []
    for path in sorted(folder.glob("*.toml")):
        for name, pattern in _COUNT.items():
            if fnmatch(path.stem, pattern):
                kind = KINDS[name]
                spec = specify(kind.specification, {"name": path.stem}, file=path)
                found.append(Experiment(path.stem, path, kind, spec, {}))
    if not found:
        raise ExperimentError(
            f"There are no experiments in {folder}. Go to the repository's folder, or name "
            "the folder with the TOML files with --experiments."
        )
    return tuple(found)
