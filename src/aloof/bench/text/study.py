"""The text study: sentences of the other sentiment, found by words or by embeddings."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.bench.identity import Identity
from aloof.bench.methods import OURS, has_device, peers
from aloof.bench.provenance import device_of
from aloof.bench.records import Record, good
from aloof.bench.resuming import resumed
from aloof.bench.revisions import revision
from aloof.bench.statistics import summary_lines
from aloof.bench.study import Group, Outcome, Study, Tell, Where, Work, epochs
from aloof.bench.tables import Grid, Line
from aloof.bench.text.corpus import Corpus, TextRun, make_runs
from aloof.bench.text.embeddings import (
    detector,
    embed_corpus,
    our_scores,
    peer_scores,
    rows_of,
)
from aloof.bench.text.specification import TextSpecification
from aloof.bench.text.tables import csv_lines, text_grid
from aloof.bench.text.words import (
    figures,
    penalised,
    train_words,
    word_runs,
    word_scores,
)
from aloof.training import discard_checkpoints
from aloof.vae import METHODS

__all__ = ["TextCase", "TextStudy", "make_text"]


@dataclass(frozen=True)
class TextCase:
    """What one record is about.

    Attributes
    ----------
    features, embedder
        What is seen of a sentence, and what made it; empty for words.
    direction, run
        The sentiment that is normal, and the number of the split.
    method
        By name.
    gamma_l
        Share of labelled anomalies; 0 for methods that look at none.
    setting
        Whose numbers it has. There are embeddings in ours alone.
    """

    features: str
    embedder: str
    direction: str
    run: int
    method: str
    gamma_l: float
    setting: str = "ours"


@dataclass(frozen=True, eq=False)
class TextStudy(Study[TextCase]):
    """Words and embeddings on the same splits.

    Attributes
    ----------
    spec
        What it was made from.
    corpus
        The sentences.
    runs
        By features, setting, direction and number.
    cases
        In the order of the table.
    """

    case_type = TextCase

    spec: TextSpecification
    corpus: Corpus
    runs: dict[tuple[str, str, str, int], TextRun]
    cases: list[TextCase]

    def run_of(self, case: TextCase) -> TextRun:
        """Return the split of a case."""
        return self.runs[case.features, case.setting, case.direction, case.run]

    def identity(self, case: TextCase) -> Identity:
        """Return the sentences, the rows, the configuration and the revision."""
        run = self.run_of(case)
        config: dict[str, Any]
        if case.features == "words":
            numbers = self.spec.numbers(case.setting)
            config = {
                "members": numbers.members,
                "min_count": numbers.min_count,
                "networks": numbers.networks,
                "objective": numbers.objective(case.method),
                "training": numbers.config(compile=self.spec.compile),
            }
        else:
            own = detector(self.spec, case.method, run)
            config = {
                "embedder": self.spec.embedder,
                "components": self.spec.components,
                "detector": own,
            }
        return Identity(
            config,
            {
                "data_sha256": self.corpus.sha256,
                "split_sha256": run.split.sha256,
                "n_normal": len(run.normal),
                "n_anomaly": len(run.anomaly) if case.gamma_l else 0,
                "n_test": len(run.split.test),
            },
            revision(case.method),
        )

    def groups(self, cases: Sequence[TextCase], where: Where) -> Iterable[Group[TextCase]]:
        """Return words as a stack for each setting, ours one for each method, every peer."""
        for setting in self.spec.setting:
            words = tuple(c for c in cases if (c.features, c.setting) == ("words", setting))
            if words:

                def work(words: tuple[TextCase, ...] = words) -> Work:
                    return partial(self._words, words, where)

                yield Group(f"recurrent VAE ({setting})", words, work, here=True)
        others = [case for case in cases if case.features != "words"]
        if not others:
            return
        kept = where.folder / f"embeddings-{self.spec.embedder_name}.npz"
        vectors: list[NDArray[np.float32]] = []

        def rows(case: TextCase) -> Any:
            if not vectors:  # made when they are needed, then kept
                vectors.append(embed_corpus(self.corpus, self.spec.embedder, kept))
            return rows_of(self.run_of(case), vectors[0], self.spec.components)

        for method in dict.fromkeys(case.method for case in others):
            own = tuple(case for case in others if case.method == method)
            if method in OURS:

                def ours(own: tuple[TextCase, ...] = own) -> Work:
                    return partial(self._ours, own, [rows(case) for case in own], where)

                yield Group(f"embeddings, {method}", own, ours, here=True)
                continue
            for case in own:
                run = self.run_of(case)
                chosen = detector(self.spec, method, run, device=str(where.device))

                def peer(
                    case: TextCase = case, run: TextRun = run, chosen: Any = chosen
                ) -> Work:
                    return partial(_peer, chosen, rows(case), run.labels)

                label = f"embeddings, {method}, {case.direction} {case.run}"
                here = where.device.type != "cpu" and has_device(chosen)
                yield Group(label, (case,), peer, here)

    def _words(self, cases: Sequence[TextCase], where: Where, tell: Tell) -> Iterator[Outcome]:
        runs = [self.run_of(case) for case in cases]
        setting = cases[0].setting
        numbers = self.spec.numbers(setting)
        objectives = [numbers.objective(case.method) for case in cases]
        checkpoint, started = where.folder / f"words-{setting}.ckpt", time.perf_counter()
        trained = resumed(
            partial(
                train_words,
                numbers,
                objectives,
                runs,
                [run.normal for run in runs],
                [run.anomaly for run in runs],
                device=where.device,
                compile=self.spec.compile,
                on_epoch=epochs(tell),
            ),
            checkpoint,
        )
        seconds = time.perf_counter() - started
        # All are scored before the first is told: a run that is killed meanwhile leaves all of
        # them to do, which is what the checkpoint belongs to.
        scores = [
            word_scores(
                result,
                objective,
                run,
                run.split.test,
                where.device,
                penalty=penalised(setting, case.method),
            )
            for case, run, result, objective in zip(
                cases, runs, trained, objectives, strict=True
            )
        ]
        for own, run in zip(scores, runs, strict=True):
            yield {**figures(own, run.labels), "seconds_of_all": seconds}
        discard_checkpoints(checkpoint)

    def _ours(
        self, cases: Sequence[TextCase], rows: Sequence[Any], where: Where, tell: Tell
    ) -> Iterator[Outcome]:
        detectors = [
            detector(self.spec, case.method, self.run_of(case), device=str(where.device))
            for case in cases
        ]
        found = our_scores(detectors, rows, epochs(tell))
        for case, own, scores in zip(cases, detectors, found, strict=True):
            yield _measures(own, scores, self.run_of(case).labels)

    def grids(self, records: Sequence[Record]) -> list[Grid]:
        """Return AUROC and average precision."""
        departures = self.spec.departures("paper") if "paper" in self.spec.setting else {}
        return [
            text_grid(self._shown(records), metric, departures=departures)
            for metric in ("auroc", "average_precision")
        ]

    def lines(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each record."""
        return csv_lines(self._shown(records))

    def summary(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each system and direction, over splits, and for both directions."""
        by = ("features", "embedder", "setting", "method", "gamma_l", "direction")
        shown = self._shown(records)
        both = [*shown, *({**record, "direction": "both"} for record in shown)]
        return summary_lines(both, by, {"auroc": 100, "average_precision": 100})

    def _shown(self, records: Sequence[Record]) -> list[Record]:
        """Return those with figures, each with all fields of its case."""
        return [{**record, **asdict(self.case_of(record))} for record in good(records)]


def make_text(spec: TextSpecification, corpus: Corpus) -> TextStudy:
    """Make the splits and list the cases: words run by run, embeddings method by method."""
    runs: dict[tuple[str, str, str, int], TextRun] = {}
    cases: list[TextCase] = []
    for setting in spec.setting if "words" in spec.features else ():
        for run in word_runs(spec, setting, corpus):
            runs["words", setting, run.direction, run.number] = run
            cases += [
                TextCase(
                    "words",
                    "",
                    run.direction,
                    run.number,
                    method,
                    0.0 if method == "vae" else spec.gamma_l,
                    setting,
                )
                for method in spec.word_methods
            ]
    if "embeddings" in spec.features and "ours" in spec.setting:
        own = make_runs(corpus, spec.runs, gamma_l=spec.gamma_l)
        own = [run for run in own if run.direction in spec.directions]
        runs |= {("embeddings", "ours", run.direction, run.number): run for run in own}
        cases += [
            TextCase(
                "embeddings",
                spec.embedder_name,
                run.direction,
                run.number,
                method,
                spec.gamma_l if _learns_labels(method) else 0.0,
            )
            for method in spec.embedding_methods
            for run in own
        ]
    return TextStudy(spec, corpus, runs, cases)


def _learns_labels(method: str) -> bool:
    if method in OURS:
        return method not in METHODS or METHODS[method].uses_labels
    return bool(getattr(peers()[method](), "uses_labels", True))


def _peer(chosen: Any, rows: Any, labels: NDArray[np.bool_], tell: Tell) -> list[Outcome]:
    return [_measures(chosen, peer_scores(chosen, rows), labels)]


def _measures(fitted: Any, scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> Outcome:
    return {
        "device": device_of(fitted),
        "auroc": float(roc_auc_score(labels, scores)),
        "average_precision": float(average_precision_score(labels, scores)),
    }
