"""``aloof bench text``: the paper's experiment with sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.bench.text import TextSpecification, TextStudy, make_text, read_reviews
from aloof.cli.bench.command import carries_out
from aloof.datasets import data_folder

__all__ = ["text"]


def _study(spec: TextSpecification, reviews: Path | None, vectors: Path | None) -> TextStudy:
    """Make the study of some sentences; they are read anew, which takes seconds."""
    if reviews is None or vectors is None:
        folder = data_folder()
        reviews = reviews or folder / "imdb" / "imdb.csv.gz"
        vectors = vectors or folder / "glove" / "glove.6B.100d.txt.gz"
    return make_text(spec, read_reviews(reviews, vectors))


@carries_out(TextSpecification, _study)
def text(
    features: Annotated[
        str | None,
        typer.Option(
            help="What the methods see: words (a recurrent VAE, as in the paper), embeddings, "
            "or both separated by a comma. Default: both."
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods of the recurrent VAE, separated by commas. Default: mml,dp,mml-dp."
        ),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="Which network and settings the recurrent VAE uses: ours, paper, or both "
            "separated by a comma. Default: ours."
        ),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Splits. Default: 5.")] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            help="Epochs on normal sentences, before anomalies join. Default: 10 (ours), 480 "
            "(paper)."
        ),
    ] = None,
    members: Annotated[
        int | None, typer.Option(help="Networks in each recurrent VAE. Default: 1.")
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="A sentence-transformers model; see aloof fit --help."),
    ] = None,
    reviews: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file with the columns review and sentiment. Default: imdb/imdb.csv.gz "
            "in the folder named by ALOOF_DATA."
        ),
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(
            help="Word vectors in GloVe's format. Default: glove/glove.6B.100d.txt.gz in the "
            "same folder."
        ),
    ] = None,
) -> None:
    """Tell film reviews of the other sentiment by their first sentence.

    One sentiment is normal and the other anomalous, then the other way round. A recurrent VAE
    learns normal sentences word by word, then trains for some epochs with 1 % of labelled
    anomalies; detectors for tables learn from sentence embeddings, on the same splits.

    Writes table.md, table.csv, summary.csv (means), records.jsonl and the prepared data. Stop
    it whenever you like: run the same command again to continue. The paper's setting needs a
    GPU. A quick first try: **aloof bench text --experiment experiments/text-small.toml**
    """
