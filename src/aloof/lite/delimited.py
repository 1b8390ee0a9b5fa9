"""Rows of CSV and TSV files, read with nothing but Python."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aloof.exceptions import TableError
from aloof.phrases import count
from aloof.written.decoding import FALLBACK, Utf8, check_encoding
from aloof.written.finding import Place, find_table, is_json, is_rule, is_total

__all__ = ["Rows", "open_rows"]

_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# So many lines at the end may be something else than rows: totals, notes.
_MOST_FOOTERS = 20
_LONGEST = 40


@dataclass
class Rows:
    """A table in a text file; `open_rows` makes one.

    Attributes
    ----------
    what
        The file, as the user knows it.
    names
        Of the columns.
    warnings
        What there is to say, once all rows are read.
    """

    what: str
    names: tuple[str, ...]
    warnings: list[str]
    _stream: Utf8
    _place: Place

    def batches(self, n: int) -> Iterator[list[list[str]]]:
        """Yield rows, `n` at a time; each has a text for each of the names."""
        batch: list[list[str]] = []
        for row in self._rows():
            batch.append(row)
            if len(batch) == n:
                yield batch
                batch = []
        if batch:
            yield batch

    def _rows(self) -> Iterator[list[str]]:
        place, names = self._place, [*self.names]
        is_all = list(place.places) == list(range(place.width))
        odd: list[list[str]] = []
        last: list[str] | None = None
        number = repeated = 0
        for values in self._records():
            number += 1
            if len(values) != place.width:
                odd.append(values)
                if len(values) > place.width or len(odd) > _MOST_FOOTERS:
                    raise self._odd(odd, number)
                continue
            if odd:
                raise self._odd(odd, number - 1)
            row = values if is_all else [values[at] for at in place.places]
            if place.line and place.width > 1 and row == names:
                repeated += 1
                continue
            if last is not None:
                yield last
            last = row
        if last is not None:
            if self._stream.n_quotes % 2 and any("\n" in value for value in last):
                raise TableError(f"{self.what}: a quotation mark is never closed.")
            if not odd and is_total(last):
                self.warnings.append(f"{self.what}: the last line is a total and left out.")
            else:
                yield last
        if repeated:
            words = count(repeated, "line")
            self.warnings.append(f"{self.what}: {words} with the column names again, left out.")
        notes = [values for values in odd if not all(map(is_rule, values))]
        if notes:
            self.warnings.append(
                f"{self.what}: ignored {count(len(notes), 'line')} at the end without "
                f"{place.width} values."
            )

    def _records(self) -> Iterator[list[str]]:
        self._stream.skip(self._place.begin)
        text = io.TextIOWrapper(io.BufferedReader(self._stream), "utf8", newline="")
        try:
            for values in csv.reader(text, delimiter=self._place.delimiter):
                if values:
                    yield values
        except UnicodeError as error:
            raise TableError(
                f"{self.what} is not written in one encoding. Name it: --encoding latin-1."
            ) from error
        except (csv.Error, OSError, EOFError, lzma.LZMAError) as error:
            raise TableError(f"{self.what} cannot be read: {error}.") from error

    def _odd(self, odd: list[list[str]], number: int) -> TableError:
        long = [values for values in odd if len(values) > self._place.width]
        values = (long or odd)[0]
        shown = self._place.delimiter.join(values)
        return TableError(
            f"{self.what}: near row {number:,} a line has {count(len(values), 'value')}, but "
            f"the header has {self._place.width:,}: {shown[:_LONGEST]!r}. Look for a missing "
            "or extra delimiter, or a quotation mark that is never closed."
        )


def open_rows(
    source: str,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    before: Mapping[str, Any] | None = None,
) -> Rows:
    """Open a text file, find the table in it, and read its names.

    Parameters
    ----------
    source
        A file, also with .gz, .bz2 or .xz; "-": standard input.
    delimiter, encoding
        What separates values, and what the file is written in; None: found out.
    header
        Whether there is a line of column names; False: they are column_1 and so on. None: there
        must be one.
    before
        What was said about the training file: it holds where nothing else is said.
    """
    said = before or {}
    what = "Standard input" if source == "-" else source
    header = said.get("header") if header is None else header
    for name in (encoding, said.get("encoding")):
        if name is not None:
            check_encoding(name)
    preferred = "\t" if source.lower().endswith((".tsv", ".tsv.gz")) else said.get("delimiter")
    try:
        stream = Utf8(_opened(source), encoding, said.get("encoding") or FALLBACK)
    except (OSError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TableError(f"{what} cannot be read: {reason}.") from error
    except UnicodeError as error:
        raise TableError(
            f"{what} is not written in {encoding or 'one encoding'}. Name it: --encoding "
            "latin-1."
        ) from error
    if stream.is_binary:
        raise TableError(
            f"{what} is not a text file. Give a CSV or TSV file; aloof itself reads others."
        )
    if is_json(stream.beginning):
        raise TableError(
            f"{what} holds JSON. Give a CSV or TSV file; aloof itself reads JSON lines, too."
        )
    place = find_table(
        stream.beginning,
        is_whole=stream.is_whole,
        delimiter=delimiter,
        preferred=preferred,
        header=header,
    )
    if place is None:
        raise TableError(f"{what} is empty. It needs a line of column names, and rows.")
    if place.no_names or (place.no_header and header is None):
        raise TableError(
            f"{what} has no line of column names. Add one, or read the file without: "
            "--no-header; the columns are then column_1, column_2 and so on."
        )
    return Rows(what, place.names, [], stream, place)


def _opened(source: str) -> Any:
    if source == "-":
        return sys.stdin.buffer
    path = Path(source)
    return _OPENERS.get(path.suffix.lower(), open)(path, "rb")
