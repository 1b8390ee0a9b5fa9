"""Markers and figures in Markdown, and whether the records bear them out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from aloof.bench.claims.evidence import Evidence, Measure, Query
from aloof.exceptions import ExperimentError

__all__ = ["Figure", "Finding", "check", "corrected", "documents", "figures"]

_MARKER = re.compile(r"<!-- (no )?figures: (.*?)-->", re.DOTALL)
_NUMBER = re.compile(
    r"(?<![\w.,])(?:(?<=[\s(\[|])[-+])?"
    r"(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:e-?\d+)?(?![\d]|\.\d|,\d{3})"
)
# What is read over: comments, code, addresses, versions of programs.
_HIDDEN = re.compile(
    r"<!--.*?-->|``.+?``|`[^`\n]+`|\]\([^)]*\)|https?://\S+|\d+\.\d+\.\d+\S*"
    r"|\b(?:Python|torch|Triton|NumPy|CUDA|version) \d[\d.]*",
    re.DOTALL,
)
_FENCE = re.compile(r"^(\s*```).*?^\s*```[^\n]*$", re.DOTALL | re.MULTILINE)
# Made by a command: its tables need no markers, and what it says is written elsewhere.
_GENERATED = ("reproduction.md",)
_SETTING = re.compile(r" \((ours|paper)\)$")
_PUBLISHED = re.compile(r"^(?:published, |the paper's )")
_OF_THE_PAPER = (Measure("paper", 1.0), Measure("paper", 1.0, "std"))
_BLANK = re.compile(r"\n[ \t]*(?:\n|$)")
_ITEM = re.compile(r"^\s*(?:[*+-]|\d+\.)\s", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """Something wrong in a document, one line for people.

    Attributes
    ----------
    path, line
        Where.
    message
        What.
    """

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.message}"


@dataclass(frozen=True)
class Figure:
    """A number of a document.

    Attributes
    ----------
    start
        Where it begins.
    text
        As it is written.
    claim
        What it should be; None: it is no result.
    """

    start: int
    text: str
    claim: tuple[Query, Measure] | None = None

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text.replace(",", ""))

    def agrees(self, value: float) -> bool:
        """Return whether a value, rounded as it is here, is this number."""
        mantissa, _, exponent = self.text.replace(",", "").partition("e")
        decimals = len(mantissa.partition(".")[2])
        half = 0.5 * 10.0 ** (int(exponent or 0) - decimals)
        if not decimals and not exponent:  # 80,000 has been rounded, too
            zeros = len(mantissa) - len(mantissa.rstrip("0"))
            half = max(half, min(0.5 * 10.0**zeros, 0.01 * abs(value)))
        return abs(self.value - value) <= half * (1 + 1e-6)

    def rewritten(self, value: float) -> str:
        """Return a value as this number is written."""
        mantissa, _, exponent = self.text.partition("e")
        decimals = len(mantissa.partition(".")[2])
        if exponent:
            shown = f"{value:.{decimals}e}"
            return re.sub(r"e([+-])0*(\d+)$", r"e\1\2", shown).replace("e+", "e")
        if not decimals and abs(value) >= 1000:
            value = round(value, 2 - math.floor(math.log10(abs(value))))
        sign, comma = "+" * mantissa.startswith(("+", "-")), "," * ("," in mantissa)
        shown = f"{value:{sign}{comma}.{decimals}f}"
        return shown.removeprefix("0") if mantissa.startswith(".") else shown


@dataclass(frozen=True)
class _Marker:
    """A marker, and the part of the text that it is about."""

    start: int
    words: str
    covers: tuple[int, int]
    results: bool


def documents(root: Path) -> list[Path]:
    """Return README.md and the pages of docs/."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def figures(text: str) -> Iterator[Figure]:
    """Yield the numbers that the markers of a document are about."""
    for marker in _markers(text):
        yield from _figures(text, marker)


def check(path: Path, evidence: Evidence, *, named: Path | None = None) -> Iterator[Finding]:
    """Yield what is wrong with the figures of a document.

    Parameters
    ----------
    path
        The document.
    evidence
        The records.
    named
        How messages name it, if otherwise.
    """
    text, name = path.read_text(encoding="utf-8"), named or path

    def finding(position: int, message: str) -> Finding:
        return Finding(name, text.count("\n", 0, position) + 1, message)

    covered: list[tuple[int, int]] = []
    for marker in _markers(text):
        covered.append(marker.covers)
        try:
            for figure in _figures(text, marker):
                message = _difference(figure, evidence)
                if message is not None:
                    yield finding(figure.start, message)
        except ExperimentError as error:
            yield finding(marker.start, str(error))
        if _splits_a_paragraph(text, marker.start):
            yield finding(
                marker.start, "has a marker that splits a paragraph: move it into one"
            )
    for figure in () if path.name in _GENERATED else _loose(text, covered):
        yield finding(figure.start, f"says {figure.text} without a marker: name its records")


def corrected(path: Path, evidence: Evidence) -> str:
    """Return a document with what the records say in the place of what differs."""
    text = path.read_text(encoding="utf-8")
    if path.name in _GENERATED:
        return text
    changes: list[tuple[Figure, str]] = []
    for marker in _markers(text):
        try:
            for figure in _figures(text, marker):
                if figure.claim is not None and _difference(figure, evidence) is not None:
                    changes.append((figure, figure.rewritten(evidence.figure(*figure.claim))))
        except ExperimentError:
            continue  # `check` says it
    for figure, new in sorted(changes, key=lambda change: -change[0].start):
        text = text[: figure.start] + new + text[figure.start + len(figure.text) :]
    return text


def _difference(figure: Figure, evidence: Evidence) -> str | None:
    """Return in which way a figure is not what the records say."""
    if figure.claim is None:
        return None
    query, measure = figure.claim
    try:
        value = evidence.figure(query, measure)
    except ExperimentError as error:
        return f"says {figure.text}, but {error}"
    if figure.agrees(value):
        return None
    whose = "the paper says" if measure.name == "paper" else "the records say"
    return f"says {figure.text} for {query.words}, {whose} {figure.rewritten(value)}"


def _markers(text: str) -> Iterator[_Marker]:
    found = [match for match in _MARKER.finditer(text) if not _in_code(text, match.start())]
    for index, match in enumerate(found):
        start = match.end() + (text[match.end() : match.end() + 1] == "\n")
        end = _end(text, start)
        if index + 1 < len(found):
            end = min(end, found[index + 1].start())
        words = " ".join(match[2].split())
        yield _Marker(match.start(), words, (start, max(start, end)), not match[1])


def _end(text: str, start: int) -> int:
    """Return where the paragraph, list item, table or block of output ends."""
    if text[start:].lstrip(" ").startswith("```"):
        fence = _FENCE.search(text, start)
        return len(text) if fence is None else fence.end()
    blank = _BLANK.search(text, start)
    end = len(text) if blank is None else blank.start()
    first = text.find("\n", start, end)
    item = None if first < 0 else _ITEM.search(text, first + 1, end)
    return end if item is None else item.start()


def _figures(text: str, marker: _Marker) -> Iterator[Figure]:
    """Yield the figures that a marker is about, each with its query."""
    if not marker.results:
        if not marker.words:
            raise ExperimentError("has a marker that does not say what the numbers are")
        return
    start, end = marker.covers
    columns = [part.split() for part in marker.words.split("|")]
    words = [word for word in columns[0] if not word.startswith(("row=", "column="))]
    keys = {word.partition("=")[0]: word.partition("=")[2] for word in columns[0]}
    if "row" in keys:
        base = Query.read(words)
        yield from _of_table(text, marker.covers, base, keys, columns[1:])
        return
    found = [
        figure for figure in _numbers(text, start, end, code=True) if _is_decimal(figure.text)
    ]
    claims = list(_claims(marker.words))
    if len(found) != len(claims):
        shown = ", ".join(figure.text for figure in found) or "none"
        raise ExperimentError(
            f"has a marker for {len(claims)} figures and {len(found)} of them: {shown}"
        )
    for figure, claim in zip(found, claims, strict=True):
        yield replace(figure, claim=claim)


def _claims(words: str) -> Iterator[tuple[Query, Measure] | None]:
    """Yield what a marker names, one figure after the other; None is no result."""
    query: Query | None = None
    for part in words.split(";"):
        if part.split() == ["-"]:
            yield None
            continue
        query = Query.read(part.split(), query)
        for measure in query.measures:
            yield query, measure


def _of_table(
    text: str,
    place: tuple[int, int],
    base: Query,
    keys: dict[str, str],
    columns: Sequence[Sequence[str]],
) -> Iterator[Figure]:
    rows = list(_rows(text, *place))
    if len(rows) < 2:
        raise ExperimentError("has a marker for a table, and none follows")
    header, *body = rows
    fields = keys["row"].split(",")
    for row in body:
        label = _PUBLISHED.sub("", row[0][1])
        published = label != row[0][1]
        labels = [part.strip(" *`") for part in label.split(", ", len(fields) - 1)]
        if len(labels) < len(fields):
            raise ExperimentError(f"has a row {label!r} that does not name its {fields}")
        *_, last = labels
        values = dict(zip(fields, labels, strict=True))
        if (setting := _SETTING.search(last)) is not None:
            values |= {fields[-1]: last[: setting.start()], "setting": setting[1]}
        named = base.on(**values)
        for index, (start, cell) in enumerate(row[1:]):
            query: Query | None = named
            if columns:
                if index >= len(columns):
                    raise ExperimentError("has a table with more columns than its marker")
                query = None if columns[index] == ["-"] else Query.read(columns[index], named)
            elif "column" in keys:
                query = named.on(**{keys["column"]: header[index + 1][1].strip(" *`")})
            if query is None:
                continue
            figures = list(_numbers(text, start, start + len(cell)))
            if published:
                query = replace(query, measures=_OF_THE_PAPER)
            if len(figures) > len(query.measures):
                raise ExperimentError(f"has a cell {cell!r} with more figures than its marker")
            for figure, measure in zip(figures, query.measures, strict=False):
                yield replace(figure, claim=(query, measure))


def _rows(text: str, start: int, end: int) -> Iterator[list[tuple[int, str]]]:
    """Yield the cells of a table, each with where it begins; the line of dashes is left out."""
    position = start
    for line in text[start:end].splitlines(keepends=True):
        if line.lstrip().startswith("|") and not re.fullmatch(r"[\s|:-]+", line):
            cells, place = [], position + line.index("|") + 1
            for cell in line.strip()[1:].removesuffix("|").split("|"):
                cells.append((place + len(cell) - len(cell.lstrip()), cell.strip()))
                place += len(cell) + 1
            yield cells
        position += len(line)


def _numbers(text: str, start: int, end: int, *, code: bool = False) -> Iterator[Figure]:
    """Yield the numbers of a part; not those in code, unless the part is a block of it."""
    shown = _shown(text)
    source = text if code and text[start:end].lstrip().startswith("```") else shown
    for match in _NUMBER.finditer(source, start, end):
        if any(character.isdigit() for character in match[0]):
            yield Figure(match.start(), match[0])


def _is_decimal(text: str) -> bool:
    return "." in text or "e" in text


def _loose(text: str, covered: Iterable[tuple[int, int]]) -> Iterator[Figure]:
    """Yield numbers with a decimal point that no marker is about."""
    parts = list(covered)
    for figure in _numbers(text, 0, len(text)):
        if "." in figure.text and not any(a <= figure.start < b for a, b in parts):
            yield figure


@lru_cache(maxsize=4)
def _shown(text: str) -> str:
    """Return a text with blanks in the place of what is no prose."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    return _HIDDEN.sub(blank, _FENCE.sub(blank, text))


def _in_code(text: str, position: int) -> bool:
    return any(match.start() <= position < match.end() for match in _FENCE.finditer(text))


def _splits_a_paragraph(text: str, position: int) -> bool:
    """Return whether a comment begins a line within a paragraph: Markdown ends it there."""
    line = text.rfind("\n", 0, position) + 1
    before = text[: max(0, line - 1)].rpartition("\n")[2]
    prose = bool(before.strip()) and not before.rstrip().endswith("-->")
    return line == position and prose and not before.lstrip().startswith(("#", "|"))
