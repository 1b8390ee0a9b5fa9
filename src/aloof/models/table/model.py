"""A model of a table: what encodes its columns, what scores the rows, and the names."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.exceptions import (
    DriftWarning,
    LabelError,
    TableError,
    TableWarning,
    once_of_each,
)
from aloof.labels import UNLABELLED
from aloof.models import Drift, Evaluation, Model, Progress, made_by
from aloof.models.table import folders, following, highest, in_memory, streaming
from aloof.models.table.drift import Profile, RowSample, drift_lines, find_drift
from aloof.models.table.encoder import MissingColumns, TableEncoder, Unreadable
from aloof.models.table.expectation import expected_rows
from aloof.models.table.explanation import TableExplanation
from aloof.models.table.files import Source, column_names, open_source
from aloof.models.table.formats import FormatName
from aloof.models.table.frames import to_table
from aloof.models.table.labelling import check_column, read_label_column
from aloof.models.table.locating import locating_errors, locating_warnings
from aloof.models.table.passages import Passage, find_passages
from aloof.phrases import count

if TYPE_CHECKING:
    from torch import Tensor

    from aloof.estimators import Detector
    from aloof.io.sections import Section

__all__ = ["TableModel"]

# What the manifest holds of a model, beside its encoder and detector.
_STATE = ("label", "id", "drop", "anomaly_value", "training")
_READING, _PROFILE = "reading", "profile"
_LABELS = (
    "Labels are a column of the table: --label COLUMN. If you have a list of ids instead: fit "
    "with --id and without labels, then aloof label MODEL LIST and aloof refit MODEL."
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TableModel(Model):
    """A detector for the rows of a table; `aloof.fit` makes one, `aloof.load` reads one.

    Frames are of any flavour, see `to_table`, with the columns of the training table in any
    order. The label, the id and dropped columns may be there; only the id has to be, and only
    for `score`. Where a frame is taken, so is the path of a file (see `open_source`), or a
    `Source`; what `score_file`, `most_anomalous`, `evaluate`, `calibrate` and `report` read may
    be larger than memory.

    Attributes
    ----------
    encoder
        What was learned about the columns.
    detector
        What scores encoded rows. It was calibrated with rows that were held out, if there
        were enough.
    label
        The column of labels in the training table, or None.
    id
        The column that names the rows, or None.
    drop
        Columns that were not to be used.
    anomaly_value
        The label of anomalies; None: 1, true or yes.
    reading
        What was said about how to read the training file: ``delimiter``, ``encoding``,
        ``sheet``, ``header``. It holds for other files, where nothing else is said.
    profile
        What other tables are compared with; see `drift`. None: the model is older.
    training
        What it was made from, as JSON can hold it: ``source`` (a path, or None for a frame),
        ``n_rows`` in the source, ``n_used`` of them (all unless it was too large), and of
        these ``n_anomalies``, ``n_labelled_normal``, ``n_unlabelled``, ``n_training`` and
        ``n_calibration`` rows (the latter two without anomalies); ``seed``; ``warnings``, a
        list of words; ``made``, see `aloof.models.made_by`. No time of day and no
        duration: one seed gives the same bytes.
    """

    encoder: TableEncoder
    label: str | None
    id: str | None
    drop: tuple[str, ...]
    anomaly_value: str | None
    reading: Mapping[str, Any] = field(default_factory=dict)
    profile: Profile | None = None

    section, kind, things, error = "table", "a table", "rows", TableError
    instead: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("labels", "anomaly", "normal"), _LABELS
    )

    def __repr__(self) -> str:
        return (
            f"TableModel({type(self.detector).__name__} of {len(self.columns)} columns, "
            f"label={self.label!r}, id={self.id!r})"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are used."""
        return self.encoder.names

    @property
    def extent(self) -> str:
        """How much there was to learn from, in words that follow "rows and anomalies"."""
        used, known = self.training["n_used"], self.training["n_rows"]
        sampled = f", a sample of {known:,}" if used < known else ""
        return f" in {count(len(self.columns), 'column')}{sampled}"

    @property
    def understood(self) -> list[str]:
        """What the training file and its columns were read as, where it needs to be said."""
        said = [f"{name!r} as {words}" for name, words in self.encoder.readings.items()]
        file = self.training.get("understood")
        return [f"{self.training['source']}: {file}", *said] if file else said

    def read_otherwise(self, data: Any) -> str:
        """Say how a file is read, where that is not as the training file was."""
        said = data.understood if isinstance(data, Source) else ""
        return "" if said == self.training.get("understood", "") else said

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that are read as text."""
        return tuple(column.name for column in self.encoder.columns if column.reads_text)

    def read(
        self,
        data: Any,
        *,
        format: FormatName | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
        sheet: str | None = None,
        header: bool | None = None,
    ) -> Source | pa.Table:
        """Open a file, or take a frame; see `open_source` and `to_table`."""
        if isinstance(data, str | os.PathLike):
            return open_source(
                data,
                format=format,
                delimiter=delimiter,
                encoding=encoding,
                sheet=sheet,
                header=header,
                before=self.reading,
            )
        return data if isinstance(data, Source) else to_table(data)

    def batches(self, data: Any, *, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file or a frame in parts; there must be some."""
        found = self.read(data)
        if isinstance(found, Source):
            yield from found.batches(rows=rows)
            return
        if not found.num_rows:
            raise TableError("The table has no rows.")
        yield from found.combine_chunks().to_batches(max_chunksize=rows)

    def encode(
        self,
        frame: Any,
        *,
        warn: Callable[[TableWarning], None] | None = None,
        unreadable: Callable[[Unreadable], None] | None = None,
    ) -> NDArray[np.float32]:
        """Return rows as the detector takes them, ``(n, n_features)``.

        Parameters
        ----------
        frame
            A frame of any flavour.
        warn
            Called with warnings about the frame in place of `warnings.warn`.
        unreadable
            Called with the counts of values that cannot be read, of each column that has some.
        """
        return self.encoder.transform(self._used(frame), warn=warn, unreadable=unreadable)

    def labels(self, frame: Any) -> NDArray[np.int64]:
        """Return 1, 0 and -1 for each row from the label column, which must be there."""
        table = self._table(frame)
        label = self._label_among(table.column_names)
        return read_label_column(label, table[label], self.anomaly_value)

    def with_label(self, label: str, anomaly_value: str | None = None) -> TableModel:
        """Return the same model with labels in another column, or with other labels."""
        former = () if self.label in (None, label) else (str(self.label),)
        return replace(
            self, label=label, anomaly_value=anomaly_value, drop=(*self.drop, *former)
        )

    def anomaly_score(
        self, data: Any, *, warn: Callable[[TableWarning], None] | None = None
    ) -> NDArray[np.float64]:
        """Return how anomalous each row is; higher is worse. For `warn`, see `encode`."""
        encoded = self.encode(data, warn=warn)
        return self.detector.anomaly_score(encoded) if len(encoded) else np.empty(0)

    def explain(self, frame: Any) -> TableExplanation:
        """Return what every column contributes to the anomaly score of each row.

        Takes about twice as long as scoring.
        """
        used = self._used(frame)
        return self.explain_encoded(self.encoder.transform(used), used)

    def explain_encoded(self, encoded: NDArray[np.float32], frame: Any) -> TableExplanation:
        """Return what `explain` does, of rows that were encoded already."""
        found = self.detector.explain(encoded)
        expected = expected_rows(self.detector, self.encoder, encoded, found.contributions)
        absent = {*self.columns} - {*to_table(frame).column_names}
        return TableExplanation.of(
            self.encoder,
            replace(found, expected=expected),
            self.encoder.read(frame),
            absent,
        )

    def passages(self, frame: Any, column: str, top: int = 3) -> list[list[Passage]]:
        """Return the words or sentences of a text that raise the score of each row most.

        Each is left out in turn, so this takes as long as scoring some dozen rows for each.
        What the trees of a committee say is left out, too: one sentence of many moves a score
        less than a single tree that changes its mind.

        Parameters
        ----------
        frame
            A frame of any flavour.
        column
            A column of text.
        top
            How many passages at most.
        """
        if column not in self.texts:
            texts = ", ".join(map(repr, self.texts))
            have = f"It reads {texts or 'none'}."
            raise TableError(f"The model does not read column {column!r} as text. {have}")

        def scores(table: pa.Table) -> NDArray[np.float64]:
            return self.detector._smooth_score(self.encode(table))

        return find_passages(self._used(frame), column, scores, top=top)

    # Each has a file of its own.
    score = in_memory.score
    score_file = streaming.score_file
    score_folder = folders.score_folder
    follow = following.follow
    most_anomalous = highest.most_anomalous

    def reasons(self, frame: Any, top: int = 3) -> list[list[str]]:
        """Return the first reasons of each row in words."""
        return self.explain(frame).reasons(top)

    def drift(self, data: Any) -> tuple[Drift, ...]:
        """Return in which ways rows do not look like the training rows.

        Columns that are gone or new, values that are missing or cannot be read, numbers in
        another unit or range, categories never seen or with other shares, times far from the
        training period. Fresh rows from the same source rarely differ. `score` also warns if
        more rows are flagged than the threshold explains.

        Parameters
        ----------
        data
            A frame, a path or a `Source`.
        """
        source = self.read(data)
        return self._accepting("fill").drift_in(self._sampled(source), column_names(source))

    def _sampled(self, data: Any) -> RowSample:
        """Return a few thousand rows of a file or a frame, drawn at random."""
        sample = RowSample(self.encoder)
        for batch in self.batches(data):
            sample.add(pa.Table.from_batches([batch]))
        return sample

    def drift_in(
        self,
        sample: RowSample,
        names: Sequence[str],
        n_flagged: int | None = None,
        warn: Callable[[TableWarning], None] | None = None,
    ) -> tuple[Drift, ...]:
        """Return what `drift` does, of a sample of rows.

        Parameters
        ----------
        sample
            Of the rows.
        names
            The columns of the table.
        n_flagged
            How many rows the threshold flags; None: it does not matter.
        warn
            Called with a warning of each, but for what is said where the rows are read.
        """
        known = [name for name in (self.label, self.id, *self.drop) if name is not None]
        found = find_drift(self.encoder, self.profile, sample.rows(), names=names, known=known)
        if n_flagged is not None:
            found += self._flagged_drift(sample.n_rows, n_flagged)
        if warn is not None:
            for words, about in drift_lines(found):
                warn(DriftWarning(words, about))
        return tuple(found)

    def _accepting(self, missing_columns: MissingColumns) -> TableModel:
        """Return the model that fills the columns that a table lacks, if it should."""
        if missing_columns not in get_args(MissingColumns):
            raise TableError(
                f"Missing columns can be refused or filled; got {missing_columns!r}."
            )
        if missing_columns == "refuse":
            return self
        return replace(self, encoder=replace(self.encoder, fills=True))

    def evaluate(
        self,
        data: Any,
        *,
        label: str | None = None,
        anomaly_value: str | None = None,
        missing_columns: MissingColumns = "refuse",
        progress: Progress | None = None,
    ) -> Evaluation:
        """Return how well scores and decisions agree with labels.

        Parameters
        ----------
        data
            A frame, a path or a `Source`. Rows without a label are ignored.
        label, anomaly_value
            The column with the labels, and the label that means anomaly. None: as in training.
        missing_columns
            As in `score`.
        progress
            Called with the number of rows done and the total.
        """
        model, source = self._accepting(missing_columns), self.read(data)
        labelled = model._labelled(label, anomaly_value)
        labelled._label_among(column_names(source))
        with locating_errors(source):
            found = labelled._labels_and_scores(source, progress)
        return self._evaluation(*found)

    def calibrate(
        self,
        data: Any,
        *,
        label: str | None = None,
        anomaly_value: str | None = None,
        missing_columns: MissingColumns = "refuse",
        progress: Progress | None = None,
    ) -> TableModel:
        """Learn how normal rows score, from rows the model was not trained on.

        Parameters
        ----------
        data
            A frame, a path or a `Source`.
        label, anomaly_value
            The column with the labels, and the label that means anomaly. None: as in training,
            if the column exists. Rows labelled as anomalies are left out.
        missing_columns
            As in `score`.
        progress
            Called with the number of rows done and the total.

        Returns
        -------
        The model. The rule of its threshold stays; its level now comes from these rows.
        """
        model, source = self._accepting(missing_columns), self.read(data)
        labelled = model._labelled(label, anomaly_value)
        if label is not None:
            labelled._label_among(column_names(source))
        chosen = {"label": label, "anomaly_value": anomaly_value}
        chosen |= {"missing_columns": missing_columns}
        call = _call(self.calibrate, source, chosen)
        with locating_errors(source):
            found = labelled._labels_and_scores(source, progress)
        return self._calibrated(*found, call)

    def report(
        self,
        data: Any,
        out: str | os.PathLike[str],
        *,
        top: int = 20,
        title: str = "Anomaly report",
        label: str | None = None,
        anomaly_value: str | None = None,
        missing_columns: MissingColumns = "refuse",
        force: bool = False,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        """Write what the model finds in a table into one HTML file.

        The file includes its pictures and loads nothing from elsewhere. All rows are scored
        and counted; from a large table, some are drawn at random for the map and for the
        shares of the columns. The file appears complete or not at all.

        Parameters
        ----------
        data
            A frame, a path or a `Source`. If it has the column of labels, the report compares
            with them.
        out
            The file to write.
        top
            How many of the most anomalous rows to list.
        title
            The heading.
        label, anomaly_value
            The column with the labels, and the label that means anomaly. None: as in training.
        missing_columns
            As in `score`.
        force
            Whether to replace an existing file.
        seed
            Decides which rows are drawn.
        progress
            Called with the number of rows done and the total.
        """
        from aloof.models.page import check_report
        from aloof.models.table.page import write_table_page

        check_report(out, force=force, top=top)
        source, labelled = self.read(data), self._accepting(missing_columns)
        chosen = {"label": label, "anomaly_value": anomaly_value}
        chosen |= {"missing_columns": missing_columns}
        if label is not None or anomaly_value is not None:
            labelled = labelled._labelled(label, anomaly_value)
        if label is not None:
            labelled._label_among(column_names(source))
        write_table_page(
            labelled,
            source,
            out,
            top=top,
            title=title,
            seed=seed,
            call=_call(
                self.report, source, {**chosen, "top": top, "title": title, "seed": seed}
            ),
            progress=progress,
        )

    def describe(self) -> dict[str, Any]:
        """Return what the model is and what it was made from, as JSON can hold it."""
        asked = dict.fromkeys(self.drop, "dropped on request")
        return {
            **super().describe(),
            "understood": self.understood,
            "label": self.label,
            "anomaly_value": self.anomaly_value,
            "id": self.id,
            "columns": [
                {
                    "name": column.name,
                    "kind": column.kind,
                    "values": column.summary(),
                    "read_as": self.encoder.readings.get(column.name),
                    "missing_share": column.missing_share,
                    "features": len(column.features),
                }
                for column in self.encoder.columns
            ],
            "dropped": {**self.encoder.dropped, **asked},
        }

    def _origin(self) -> list[tuple[str, str]]:
        training = self.training
        rows = count(training["n_used"], "row")
        if training["n_used"] < training["n_rows"]:
            rows += (
                f", drawn at random from {training['n_rows']:,}, with all labelled anomalies"
            )
        labels = "none, so all rows are treated as normal"
        if self.label is not None:
            value = "" if self.anomaly_value is None else f" ({self.anomaly_value!r})"
            labels = f"column {self.label}{value}: {self._label_counts()}"
        return [
            ("Trained on", f"{training['source'] or 'a table in memory'}: {rows}"),
            ("Labels", labels),
            ("Rows are identified by", "nothing" if self.id is None else f"column {self.id}"),
            *(("Read", words) for words in self.understood),
        ]

    def _own_facts(self) -> list[tuple[str, str]]:
        hidden = " - ".join(map(str, self.detector.hidden))
        words = f"encoder {hidden}, {self.detector.latent_dim} latent dimensions"
        return [("Networks", words)]

    def _state(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in _STATE}
        profile = None if self.profile is None else self.profile.state()
        return {
            "encoder": self.encoder.state(),
            **state,
            _READING: dict(self.reading),
            _PROFILE: profile,
        }

    @classmethod
    def _schema(cls) -> type[Section]:
        from aloof.models.table.manifest import TableManifest

        return TableManifest

    @classmethod
    def _read_state(
        cls, state: dict[str, Any], detector: Detector, tensors: dict[str, Tensor]
    ) -> dict[str, Any]:
        encoder = TableEncoder.from_state(state["encoder"])
        if (encoder.n_features,) != detector.shape_:
            raise ValueError("the columns do not match the detector's")
        names = {name: state[name] for name in _STATE}
        reading = dict(state.get(_READING, {}))  # older models have none
        profile = state.get(_PROFILE)
        return {
            "encoder": encoder,
            **names,
            "drop": tuple(names["drop"]),
            _READING: {name: value for name, value in reading.items() if value is not None},
            _PROFILE: None if profile is None else Profile.from_state(profile),
        }

    def _label_among(self, names: Sequence[str]) -> str:
        """Return the column of labels, which must be among those of a table."""
        if self.label is None:
            raise LabelError(
                "The model was fitted without labels. Name the column that has them: "
                "label='fraud', on the command line --label fraud."
            )
        check_column(self.label, names, "labels")
        return self.label

    def _labelled(self, label: str | None, anomaly_value: str | None) -> TableModel:
        """Return the model with other labels, as far as they are given."""
        column = self.label if label is None else label
        if column is None:
            if anomaly_value is not None:
                raise TableError(
                    "An anomaly value needs the column it is in: label='fraud' (--label fraud)."
                )
            return self
        value = self.anomaly_value if anomaly_value is None else anomaly_value
        return self.with_label(column, value)

    def scored(
        self, data: Any, progress: Progress | None = None
    ) -> Iterator[tuple[pa.RecordBatch, NDArray[np.float64]]]:
        """Yield the rows in parts, with their scores; warn once of each thing.

        What does not look like the rows that were learned from is said at the end.
        """
        source, done = self.read(data), 0
        sample = RowSample(self.encoder)
        total = source.n_rows if isinstance(source, Source) else source.num_rows
        warn = once_of_each(locating_warnings(source, _issue))
        for batch in self.batches(source):
            yield batch, self.anomaly_score(batch, warn=warn)
            sample.add(pa.Table.from_batches([batch]))
            done += batch.num_rows
            if progress is not None:
                progress(done, total)
        self.drift_in(sample, column_names(source), warn=warn)

    def _labels_and_scores(
        self, source: Source | pa.Table, progress: Progress | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return labels and scores of all rows; no row has a label where there is no column."""
        has_labels = self.label in column_names(source)
        labels, scores = [], []
        for batch, found in self.scored(source, progress):
            none = np.full(len(found), UNLABELLED)
            labels.append(self.labels(batch) if has_labels else none)
            scores.append(found)
        return np.concatenate(labels), np.concatenate(scores)

    def _table(self, data: Any) -> pa.Table:
        found = self.read(data)
        return found.read() if isinstance(found, Source) else found

    def copied(
        self, names: Sequence[str], keep: Sequence[str], keep_all: bool
    ) -> tuple[str, ...]:
        """Return the columns of a table that its scores are written with: the id, `keep`."""
        own = [] if self.id is None else [self.id]
        return tuple(dict.fromkeys([*own, *keep, *(names if keep_all else ())]))

    def _used(self, frame: Any) -> pa.Table:
        """Return the columns that are to be encoded, and those that nobody knows."""
        found = self.read(frame)
        known = {self.label, self.id, *self.drop} - set(self.columns)
        names = [name for name in column_names(found) if name not in known]
        return found.read(names) if isinstance(found, Source) else found.select(names)


def _call(
    method: Callable[..., Any], data: Source | pa.Table, options: dict[str, Any]
) -> dict[str, Any]:
    """Return how to call a method again."""
    if isinstance(data, pa.Table):
        return made_by(method, None, options)
    return made_by(method, data.written, {**options, **data.options})


def _issue(warning: TableWarning) -> None:
    warnings.warn(warning, stacklevel=5)
