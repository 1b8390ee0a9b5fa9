"""``aloof bench text``: the paper's experiment with sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import TaskID

from aloof.cli.bench.experiment import (
    Options,
    Records,
    chosen,
    command_line,
    names,
    progress,
    show,
    stoppable,
)
from aloof.datasets import data_folder
from aloof.exceptions import ExperimentError
from aloof.experiments.corpus import Corpus, read_reviews
from aloof.experiments.text import TextExperiment, make_text_experiment, run_text
from aloof.experiments.text_embeddings import (
    EMBEDDING_METHODS,
    embed_corpus,
    run_embeddings,
)
from aloof.experiments.text_results import write_text_tables
from aloof.text import DEFAULT_EMBEDDER
from aloof.training import EpochReport, discard_checkpoints

__all__ = ["text"]

_FEATURES = ("words", "embeddings")


def text(
    features: Annotated[
        str,
        typer.Option(
            help="What the methods see: words (a recurrent VAE, as in the paper), embeddings, "
            "or both with a comma."
        ),
    ] = "words,embeddings",
    methods: Annotated[
        str | None,
        typer.Option(help="Of the recurrent VAE, with commas between. Default: mml,dp,mml-dp."),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Splits. Default: 5.")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="On normal sentences, before anomalies join.")
    ] = None,
    members: Annotated[int | None, typer.Option(help="Networks of a recurrent VAE.")] = None,
    embedder: Annotated[
        str, typer.Option(help="A sentence-transformers model; see aloof fit --help.")
    ] = DEFAULT_EMBEDDER,
    reviews: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file with the columns review and sentiment. Default: imdb/imdb.csv.gz "
            "in the folder that ALOOF_DATA names."
        ),
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(
            help="Word vectors in GloVe's format. Default: glove/glove.6B.100d.txt.gz there."
        ),
    ] = None,
    experiment: Options = None,
    device: Annotated[str, typer.Option(help="Where to train.")] = "auto",
    jobs: Annotated[int, typer.Option(min=1, help="Processes that fit other systems.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for results.", file_okay=False)] = Path(
        "results/text"
    ),
    as_json: Records = False,
) -> None:
    """Find film reviews of the other sentiment by their first sentence.

    One sentiment is normal, the other anomalous, and the other way round. A recurrent VAE
    learns normal sentences word by word, then some epochs with 1 % of labelled anomalies;
    detectors for tables learn from sentence embeddings, on the same splits.

    Writes table.md, table.csv, records.jsonl, and what was prepared. Stop it whenever you like:
    the same command continues. Meant for a GPU; try first: **aloof bench text --experiment
    experiments/text-small.toml**
    """
    given = {
        "methods": names("methods", methods),
        "runs": runs,
        "epochs": epochs,
        "members": members,
    }
    seen = names("features", features) or []
    if unknown := [name for name in seen if name not in _FEATURES]:
        raise ExperimentError(
            f"--features must be words, embeddings or both; got {unknown[0]!r}."
        )
    what, command = make_text_experiment(chosen(experiment, given)), command_line()
    corpus = _prepared(reviews, vectors, out)
    with stoppable(out):
        records = _run(what, corpus, seen, embedder, out, device, jobs)
    show(write_text_tables(records, out, command=command), records, out, as_json=as_json)


def _prepared(reviews: Path | None, vectors: Path | None, out: Path) -> Corpus:
    """Return the sentences; they are read anew, which takes seconds."""
    if reviews is None or vectors is None:
        folder = data_folder()
        reviews = reviews or folder / "imdb" / "imdb.csv.gz"
        vectors = vectors or folder / "glove" / "glove.6B.100d.txt.gz"
    corpus = read_reviews(reviews, vectors)
    out.mkdir(parents=True, exist_ok=True)
    return corpus


def _run(
    what: TextExperiment,
    corpus: Corpus,
    features: list[str],
    embedder: str,
    out: Path,
    device: str,
    jobs: int,
) -> list[dict[str, Any]]:
    path, records = out / "records.jsonl", []
    with progress() as bar:
        tasks: dict[str, TaskID] = {}

        def tell(name: str, report: EpochReport) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=report.max_epochs)
            bar.update(tasks[name], completed=report.epoch, total=report.max_epochs)

        if "words" in features:
            checkpoint = out / "words.ckpt"
            records += run_text(
                what,
                corpus,
                path,
                device=device,
                checkpoint=checkpoint,
                on_epoch=lambda report: tell("recurrent VAE", report),
            )
            discard_checkpoints(checkpoint)
        if "embeddings" in features:
            kept = out / f"embeddings-{Path(embedder).name}.npz"
            records += run_embeddings(
                corpus,
                embed_corpus(corpus, embedder, kept),
                path,
                methods=EMBEDDING_METHODS,
                embedder=Path(embedder).name,
                n_runs=what.runs,
                gamma_l=what.gamma_l,
                jobs=jobs,
                on_epoch=lambda report: tell("embeddings", report),
                device=device,
            )
    return records
