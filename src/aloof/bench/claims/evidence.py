"""What the records say: the words of a marker, and the figure they stand for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from aloof.bench.images.paper import image_paper_figure
from aloof.bench.odds.paper import paper_figures
from aloof.bench.paper.kinds import KINDS
from aloof.bench.records import Record, good, grouped
from aloof.bench.runner import RECORDS
from aloof.bench.statistics import moments, paired
from aloof.bench.text.corpus import DIRECTIONS
from aloof.bench.text.tables import PAPER_IMDB
from aloof.datasets import PublicImages, list_datasets
from aloof.estimators import DETECTORS
from aloof.exceptions import ExperimentError
from aloof.vae import METHODS

__all__ = ["Evidence", "Measure", "Query"]

# What tells records of one cell apart, and what must be the same in all of them.
_REPLICATES = ("normal", "anomaly", "seed", "run", "world", "split")
_KEYS = (
    *("dataset", "method", "features", "embedder", "direction", "sampler", "task"),
    *("gamma_l", "gamma_p", "variant", "setting", "scaling"),
    *("protocol", "labels", "hidden", "asker", "voice", "problem", "system"),
)
_STATISTICS = ("std", "n", "min", "max", "sum", "low", "high")
_RELATIONS = ("less", "per", "against")
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)(e-?\d+)?( ?%)?")


@dataclass(frozen=True)
class Measure:
    """What is taken of records.

    Attributes
    ----------
    name
        Of a field, dotted where it is within another; ``paper``: the paper's figure.
    scale
        What it is multiplied by.
    statistic
        Over records.
    """

    name: str = "auroc"
    scale: float = 100.0
    statistic: str = "mean"

    @classmethod
    def read(cls, word: str) -> Measure:
        """Read a word of a marker."""
        match = re.fullmatch(r"([A-Za-z][\w.@-]*)(%)?(?:/([\d.]+))?", word)
        if match is None:
            raise ExperimentError(f"{word!r} is not a word that markers know.")
        name, percent, divisor = match.groups()
        return cls(name, (100.0 if percent else 1.0) / float(divisor or 1))


@dataclass(frozen=True)
class Query:
    """Which records, and what of them.

    Attributes
    ----------
    source
        A folder or a file below the folder of results.
    where
        Values of fields.
    measures
        One figure each.
    mean_over
        A field; the figure is the mean of the means of its values.
    records
        How many there must be; None: some.
    relation, other
        What the figures are compared with, and how.
    """

    source: str
    where: Mapping[str, str] = field(default_factory=dict)
    measures: tuple[Measure, ...] = (Measure(),)
    mean_over: str | None = None
    records: int | None = None
    relation: str = ""
    other: Query | None = None

    @classmethod
    def read(cls, words: Sequence[str], base: Query | None = None) -> Query:
        """Read the words of a figure; what they do not say is as in `base`."""
        for position, word in enumerate(words):
            if word in _RELATIONS:
                own = cls.read(words[:position], base)
                other = cls.read(words[position + 1 :], replace(own, relation="", other=None))
                return replace(own, relation=word, other=other)
        if base is None:
            if not words or "=" in words[0]:
                raise ExperimentError("A marker begins with a folder or a file of results.")
            base, words = cls(words[0]), words[1:]
        query, measures = replace(base, relation="", other=None), list[Measure]()
        for word in words:
            key, given, value = word.partition("=")
            if not given and word in _STATISTICS:
                measures.append(replace([Measure(), *measures][-1], statistic=word))
            elif not given:
                measures.append(Measure.read(word))
            elif key == "from":
                query = replace(query, source=value)
            elif key == "mean-over":
                query = replace(query, mean_over=value)
            elif key == "records":
                query = replace(query, records=int(value))
            else:
                query = query.on(**{key: value})
        return replace(query, measures=tuple(measures)) if measures else query

    def on(self, **values: str) -> Query:
        """Return the same with further values of fields, also of what it is compared with."""
        other = None if self.other is None else self.other.on(**values)
        return replace(self, where={**self.where, **values}, other=other)

    @property
    def filters(self) -> dict[str, str]:
        """The values to look for; a field that the value of another names is part of it."""
        named = {
            name for value in self.where.values() for name in re.findall(r"{(\w+)}", value)
        }
        return {
            key: value.format(**self.where)
            for key, value in self.where.items()
            if key not in named
        }

    @property
    def words(self) -> str:
        """What it is about, for a message."""
        own = ", ".join(f"{key}={value}" for key, value in self.filters.items())
        text = f"{own} in {self._place}" if own else self._place
        return text if self.other is None else f"{text} {self.relation} {self.other.words}"

    @property
    def _place(self) -> str:
        names = {key: _name(value) for key, value in self.where.items()}
        try:
            return self.source.format(**names)
        except (KeyError, IndexError, ValueError) as error:
            raise ExperimentError(
                f"{self.source!r} names a field that the marker does not."
            ) from error


@dataclass(frozen=True)
class Evidence:
    """Records below a folder.

    Attributes
    ----------
    folder
        Where results are.
    """

    folder: Path

    def figure(self, query: Query, measure: Measure) -> float:
        """Return what the records say.

        Raises
        ------
        ExperimentError
            There is no such record, or they are of several kinds.
        """
        if query.other is None:
            return self._value(query, measure)
        if query.relation == "against":
            values = [self._by_replicate(own, measure) for own in (query, query.other)]
            p_value = paired(*values).p_value
            if p_value is None:
                raise ExperimentError(f"there is nothing to compare for {query.words}")
            return p_value
        other_measure = measure
        if query.other.measures != query.measures:
            other_measure = query.other.measures[query.measures.index(measure)]
        ours, theirs = self._value(query, measure), self._value(query.other, other_measure)
        return ours - theirs if query.relation == "less" else ours / theirs

    def _value(self, query: Query, measure: Measure) -> float:
        if measure.name == "paper":
            records = _read(self.folder / query._place)
            sets = {str(record["dataset"]) for record in records if "dataset" in record}
            known = query
            if "dataset" not in query.where and len(sets) == 1:
                known = query.on(dataset=sets.pop())
            return _of_the_paper(known, measure.statistic)
        chosen = self.chosen(query)
        groups = [chosen]
        if query.mean_over is not None:
            groups = list(grouped(chosen, query.mean_over).values())
        for group in groups:
            _check_alike(group, query)
        found = [_statistic(group, measure, query) for group in groups]
        return measure.scale * float(np.mean(found))

    def _by_replicate(self, query: Query, measure: Measure) -> dict[tuple[Any, ...], float]:
        if measure.name == "paper":
            raise ExperimentError("the paper has no figure for each problem to test with")
        chosen = self.chosen(query)
        _check_alike(chosen, query)
        return {
            tuple(r.get(name) for name in _REPLICATES): measure.scale * _number(r, measure.name)
            for r in chosen
        }

    def chosen(self, query: Query) -> list[Record]:
        """Return the records that are meant; there must be some."""
        measures = [m.name for m in query.measures if m.name != "paper"]
        where = query.filters
        found = [
            record
            for record in _read(self.folder / query._place)
            if all(_matches(key, record.get(key), value) for key, value in where.items())
            and all(_get(record, name) is not None for name in measures)
        ]
        if not found:
            raise ExperimentError(f"there is no record of {query.words}")
        if query.records is not None and len(found) != query.records:
            raise ExperimentError(
                f"there are {len(found)} records of {query.words}, not {query.records}"
            )
        return found


def _statistic(records: Sequence[Record], measure: Measure, query: Query) -> float:
    values = [_number(record, measure.name) for record in records]
    if measure.statistic in ("low", "high"):
        from aloof.planning import estimate_mean, estimate_share

        whether = all(isinstance(_get(record, measure.name), bool) for record in records)
        estimate = (estimate_share if whether else estimate_mean)(values)
        return float(getattr(estimate, measure.statistic))
    if measure.statistic == "n":
        return len(values) / measure.scale
    found = moments(values)
    simple = {"mean": found.mean, "std": found.std, "min": min(values), "max": max(values)}
    return simple.get(measure.statistic, float(np.sum(values)))


def _check_alike(records: Sequence[Record], query: Query) -> None:
    """Refuse records of several systems, settings or conditions in one figure."""
    free = [key for key, value in query.where.items() if value == "*" or "+" in value]
    for key in _KEYS:
        values = sorted({str(record[key]) for record in records if key in record})
        if len(values) > 1 and key not in free:
            raise ExperimentError(
                f"records of {query.words} are of {key} {' and '.join(values)}: say which"
            )
    places = [tuple(record.get(name) for name in (*_REPLICATES, *free)) for record in records]
    if len(set(places)) < len(places):
        raise ExperimentError(f"there are several records of {query.words}: say which")


def _number(record: Record, name: str) -> float:
    return float(np.mean(_get(record, name)))


def _get(record: Record, name: str) -> Any:
    """Return a field, also within others; ``found@16``: of the plan with 16 states.

    ``found.-1``: the last of a list.
    """
    field_name, _, count = name.partition("@")
    if count:
        plans = [plan for plan in record.get("plans", ()) if plan["n"] == int(count)]
        return plans[0].get(field_name) if plans else None
    found: Any = record
    for part in field_name.split("."):
        if isinstance(found, list) and re.fullmatch(r"-?\d+", part):
            found = found[int(part)] if -len(found) <= int(part) < len(found) else None
        else:
            found = found.get(part) if isinstance(found, Mapping) else None
    return found


@lru_cache(maxsize=64)
def _read(path: Path) -> tuple[Record, ...]:
    """Read a folder of records, of each case the last one, or a file of JSON."""
    file = path / RECORDS if path.suffix == "" else path
    kind = KINDS.get(path.name.partition("-")[0])
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".jsonl":
            lines = [json.loads(line) for line in text.splitlines()]
            whole = ({**line, **kind.fields(line)} if kind else line for line in good(lines))
            return tuple(_latest(whole))
        content = json.loads(text)
    except OSError as error:
        raise ExperimentError(f"{file} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ExperimentError(f"{file} holds no records: {error}") from error
    if isinstance(content, Mapping):
        runs = content.get("runs", [])
        return (*runs, {key: value for key, value in content.items() if key != "runs"})
    return tuple(content)


def _latest(records: Iterable[Record]) -> Iterable[Record]:
    def case(record: Record) -> tuple[str, ...]:
        return tuple(json.dumps(record.get(key)) for key in (*_KEYS, *_REPLICATES))

    return {case(record): record for record in records}.values()


def _matches(key: str, value: Any, wanted: str) -> bool:
    if wanted == "*":
        return value is not None
    if "+" in wanted:
        return any(_matches(key, value, one) for one in wanted.split("+"))
    if key == "setting":  # what has but one way has no setting
        return value in (None, "", wanted)
    if value is None:
        return False
    if isinstance(value, bool):
        return str(value).lower() == wanted.lower()
    if isinstance(value, int | float):
        number = _as_number(wanted)
        return number is not None and math.isclose(value, number, rel_tol=1e-9, abs_tol=1e-12)
    return _name(str(value)) == _name(wanted)


@lru_cache(maxsize=4096)
def _as_number(text: str) -> float | None:
    match = _NUMBER.match(text.replace(",", ""))
    if match is None:
        return None
    number = float(match[0].rstrip(" %"))
    return number / 100 if match[3] else number


@lru_cache(maxsize=4096)
def _name(text: str) -> str:
    """Return the name that the code has for what people call otherwise."""
    plain = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")
    return _names().get(plain, plain)


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    titles = {entry.title: entry.name for entry in list_datasets()}
    titles |= {METHODS[name].title: name for name in METHODS}
    titles |= {kind.__name__: name for name, kind in DETECTORS.items()}
    titles["Isolation Forest"] = "iforest"
    plain = {re.sub(r"[^a-z0-9.]+", "-", title.lower()): name for title, name in titles.items()}
    return plain


def _of_the_paper(query: Query, statistic: str) -> float:
    """Return what the paper has in the place of a query."""
    where = query.where
    dataset, method = _name(where.get("dataset", "")), _name(where.get("method", ""))
    gamma_l, gamma_p = (
        _as_number(where.get(key, "0")) or 0.0 for key in ("gamma_l", "gamma_p")
    )
    variant = where.get("variant", "")
    figure: tuple[float, float | None] | None = None
    if "direction" in where:
        texts = PAPER_IMDB[0.0] if method == "vae" else PAPER_IMDB[0.01]
        if method in ("vae", "mml"):
            position = [*DIRECTIONS, "*"].index(where["direction"])
            mean, spread = (float(part) for part in texts[position].split(" ± "))
            figure = mean, spread
    elif dataset in {entry.name for entry in list_datasets(PublicImages)}:
        members = int(where["members"]) if "members" in where else None
        figure = image_paper_figure(dataset, method, gamma_l, gamma_p, variant, members)
    elif query.mean_over == "dataset":
        row = paper_figures("complete", method)
        figure = (float(np.mean([mean for mean, _ in row.values()])), None) if row else None
    elif variant:
        figure = paper_figures("ablation", variant).get(dataset)
    else:
        figure = paper_figures("complete", method).get(dataset)
    if figure is None:
        raise ExperimentError(f"the paper has no figure for {query.words}")
    value = figure[0] if statistic == "mean" else figure[1]
    if value is None:
        raise ExperimentError(f"the paper has no {statistic} for {query.words}")
    return value
