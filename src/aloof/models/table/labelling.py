"""Labels in a column of a table: 1, true or yes, 0, false or no, or a value of one's own."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.exceptions import LabelError, TableError
from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.models.table.columns import one_array
from aloof.models.table.columns.reading import read_text
from aloof.models.table.locating import Misread, MisreadLabels
from aloof.suggestion import closest
from aloof.written.cells import MISSING_WORDS

__all__ = ["check_column", "check_labels", "check_share", "read_label_column"]

# Yes and no, true and false, as spreadsheets and people write them.
_YES = (
    "1 true yes y ja j wahr oui vrai si sí sì verdadero vero sim verdadeiro tak prawda ano da "
    "да истина evet igen kyllä"
).split()
_NO = (
    "0 false no n nein falsch non faux falso não nao nie fałsz ne nee нет ложь hayır nem nej "  # noqa: RUF001
    "nei falskt falsk"
).split()
_MEANINGS = {
    **dict.fromkeys(_YES, ANOMALY),
    **dict.fromkeys(_NO, NORMAL),
    **dict.fromkeys(("-1", *MISSING_WORDS), UNLABELLED),
}
# So many different labels in as many rows are ids.
_MANY = 20
_WITH_COMMA = re.compile(r"-?\d,0")


def check_column(name: str, names: Sequence[str], role: str) -> None:
    """Raise where a table has no column of this name; `role` says what for."""
    if name not in names:
        listed = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise TableError(
            f"There is no column {name!r} for the {role}{closest(name, names)}. The table has: "
            f"{listed}."
        )


def read_label_column(
    name: str, column: pa.Array | pa.ChunkedArray, anomaly_value: str | None = None
) -> NDArray[np.int64]:
    """Return 1, 0 and -1 for each row.

    Parameters
    ----------
    name
        The column's name.
    column
        1, true or yes for anomalies, 0, false or no for normal rows, in any spelling, in many
        languages, and as numbers or text; nothing or -1 for unlabelled rows.
    anomaly_value
        The label of anomalies where it is another. Then every other value is normal, and
        only rows without a value are unlabelled.
    """
    coded = read_text(name, one_array(column)).dictionary_encode()
    values = coded.dictionary.to_pylist()
    if anomaly_value is None:
        meanings = [_MEANINGS.get(_plain(value)) for value in values]
    else:
        wanted = _plain(str(anomaly_value))
        meanings = [ANOMALY if _plain(value) == wanted else NORMAL for value in values]
    unknown = [v for v, meaning in zip(values, meanings, strict=True) if meaning is None]
    if unknown:
        shown = tuple(sorted(unknown)[:8])
        raise MisreadLabels(
            Misread(
                name,
                f"Cannot read the labels in column {name!r}: ",
                ". Use 1 for anomalies, 0 for normal rows and nothing for the rest, or say "
                f"which value means anomaly ({_hint(unknown, coded)}).",
                shown,
                len(unknown) - len(shown),
            )
        )
    codes = pc.fill_null(coded.indices, len(values)).to_numpy(zero_copy_only=False)
    labels: NDArray[np.int64] = np.array([*meanings, UNLABELLED], np.int64)[codes]
    return labels


def check_labels(
    name: str,
    column: pa.Array | pa.ChunkedArray,
    labels: NDArray[np.int64],
    anomaly_value: str | None = None,
) -> None:
    """Raise where the labels of all rows look as if they meant something else."""
    distinct = pc.unique(read_text(name, one_array(column))).drop_null().to_pylist()
    n_anomalies = int((labels == ANOMALY).sum())
    if anomaly_value is not None and not n_anomalies:
        raise LabelError(
            f"No row has the label {anomaly_value!r} in column {name!r}"
            f"{closest(str(anomaly_value), distinct)}. The values there are: "
            f"{_listed(distinct)}."
        )
    if anomaly_value is None and {"-1", "1"} == {_plain(value) for value in distinct}:
        raise LabelError(
            f"Column {name!r} holds only -1 and 1. Some tools use -1 for anomalies, others "
            "for unlabelled rows. Say which value means anomaly: anomaly_value=-1 "
            "(--anomaly-value -1); or leave unlabelled rows empty."
        )
    if anomaly_value is not None and len(distinct) == len(labels) > _MANY:
        raise LabelError(
            f"Column {name!r} has another value in each of {len(labels):,} rows, so it can "
            "hardly be that of the labels."
        )


def check_share(labels: NDArray[np.int64]) -> None:
    """Raise where so many rows to learn from are anomalies that it must be a mistake."""
    n_anomalies = int((labels == ANOMALY).sum())
    if 2 * n_anomalies > len(labels):
        raise LabelError(
            f"{n_anomalies:,} of {len(labels):,} rows are labelled as anomalies. Most rows "
            "must be normal to learn what normal is. If the label means something else, say "
            f"which value means anomaly ({_said('fraud')})."
        )


def _plain(value: str) -> str:
    """Return one spelling for all of a value's: of numbers, and of true and false."""
    text = value.strip()
    try:
        number = float(text.replace(",", ".") if _WITH_COMMA.fullmatch(text) else text)
    except ValueError:
        folded = text.lower()
        return folded if folded in _MEANINGS else text
    return str(int(number)) if number.is_integer() else text


def _said(value: str) -> str:
    """Say how to name the label of anomalies, in Python and on the command line."""
    return f"anomaly_value={value!r}, on the command line --anomaly-value {shlex.quote(value)}"


def _hint(unknown: Sequence[str], coded: pa.DictionaryArray) -> str:
    """Say how to name the label of anomalies, by the example of the rarest label."""
    counts = Counter(coded.drop_null().to_pylist())
    return _said(min(sorted(unknown), key=counts.__getitem__).strip())


def _listed(values: Sequence[str]) -> str:
    shown = ", ".join(repr(value[:40]) for value in sorted(values)[:8])
    return shown + (f" and {len(values) - 8:,} more" if len(values) > 8 else "")
