"""The text study: sentences of the other sentiment, found by words or by embeddings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.bench.identity import Identity
from aloof.bench.methods import OURS, has_device, peers
from aloof.bench.provenance import device_of
from aloof.bench.records import Record, good
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
from aloof.bench.text.words import figures, train_words, word_runs, word_scores
from aloof.exceptions import AloofWarning, StaleCheckpointError
from aloof.training import discard_checkpoints

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
    """

    features: str
    embedder: str
    direction: str
    run: int
    method: str
    gamma_l: float


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
        By features, direction and number.
    cases
        In the order of the table.
    """

    case_type = TextCase

    spec: TextSpecification
    corpus: Corpus
    runs: dict[tuple[str, str, int], TextRun]
    cases: list[TextCase]

    def run_of(self, case: TextCase) -> TextRun:
        """Return the split of a case."""
        return self.runs[case.features, case.direction, case.run]

    def identity(self, case: TextCase) -> Identity:
        """Return the sentences, the rows, the configuration and the revision."""
        run = self.run_of(case)
        config: dict[str, Any]
        if case.features == "words":
            config = {
                "members": self.spec.members,
                "min_count": self.spec.min_count,
                "networks": self.spec.networks,
                "objective": self.spec.objective(case.method),
                "training": self.spec.config,
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
        """Return all words as one stack, our detectors a stack for each, and every peer."""
        words = tuple(case for case in cases if case.features == "words")
        if words:
            yield Group(
                "recurrent VAE", words, lambda: partial(self._words, words, where), here=True
            )
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
        checkpoint, started = where.folder / "words.ckpt", time.perf_counter()
        train = partial(
            train_words,
            self.spec,
            [self.spec.objective(case.method) for case in cases],
            runs,
            [run.normal for run in runs],
            [run.anomaly for run in runs],
            device=where.device,
            checkpoint=checkpoint,
            on_epoch=epochs(tell),
        )
        try:
            trained = train()
        except StaleCheckpointError:
            words = "A killed run had other cases, data or settings; starting over."
            warnings.warn(words, AloofWarning, stacklevel=2)
            discard_checkpoints(checkpoint)
            trained = train()
        seconds = time.perf_counter() - started
        # All are scored before the first is told: a run that is killed meanwhile leaves all of
        # them to do, which is what the checkpoint belongs to.
        scores = [
            word_scores(result, self.spec, case.method, run, run.split.test, where.device)
            for case, run, result in zip(cases, runs, trained, strict=True)
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
        return [text_grid(good(records), metric) for metric in ("auroc", "average_precision")]

    def lines(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each record."""
        return csv_lines(good(records))

    def summary(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return a line for each system and direction, over splits, and for both directions."""
        by = ("features", "embedder", "method", "gamma_l", "direction")
        both = [*good(records), *({**r, "direction": "both"} for r in good(records))]
        return summary_lines(both, by, {"auroc": 100, "average_precision": 100})


def make_text(spec: TextSpecification, corpus: Corpus) -> TextStudy:
    """Make the splits and list the cases: words run by run, embeddings method by method."""
    runs: dict[tuple[str, str, int], TextRun] = {}
    cases: list[TextCase] = []
    if "words" in spec.features:
        for run in word_runs(spec, corpus):
            runs["words", run.direction, run.number] = run
            cases += [
                TextCase(
                    "words",
                    "",
                    run.direction,
                    run.number,
                    method,
                    0.0 if method == "vae" else spec.gamma_l,
                )
                for method in spec.word_methods
            ]
    if "embeddings" in spec.features:
        own = make_runs(corpus, spec.runs, gamma_l=spec.gamma_l)
        own = [run for run in own if run.direction in spec.directions]
        runs |= {("embeddings", run.direction, run.number): run for run in own}
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
        return method != "vae"
    return bool(getattr(peers()[method](), "uses_labels", True))


def _peer(chosen: Any, rows: Any, labels: NDArray[np.bool_], tell: Tell) -> list[Outcome]:
    return [_measures(chosen, peer_scores(chosen, rows), labels)]


def _measures(fitted: Any, scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> Outcome:
    return {
        "device": device_of(fitted),
        "auroc": float(roc_auc_score(labels, scores)),
        "average_precision": float(average_precision_score(labels, scores)),
    }
