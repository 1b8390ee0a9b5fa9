"""A card: what a model is, what it learned from, how good it was found to be, and its limits.

In Markdown, with the front matter that model hubs read. It says what the model folder knows and
what the user adds, and of everything else that it is unknown.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aloof.calibration import smallest_p
from aloof.exceptions import ModelError
from aloof.models.base import Model
from aloof.persistence import identity
from aloof.phrases import count

__all__ = ["Figures", "digests", "model_card", "read_figures"]

_UNKNOWN = "Unknown."
_FILES = ("manifest.json", "model.safetensors")
_MEASURES = {
    "auroc": "AUROC",
    "average_precision": "average precision",
    "precision": "precision",
    "recall": "recall",
}


@dataclass(frozen=True)
class Figures:
    """How well a model agreed with labels; what ``aloof evaluate --json`` prints.

    Attributes
    ----------
    found
        Counts and measures; see `aloof.models.Evaluation`.
    data
        What was evaluated, as the user wrote it.
    date
        When, as ISO 8601 writes it.
    model
        The digest of the model that was; see `aloof.persistence.identity`.
    """

    found: Mapping[str, Any]
    data: str
    date: str
    model: str


def read_figures(path: str | os.PathLike[str]) -> Figures:
    """Read what ``aloof evaluate --json`` printed into a file."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return Figures(content, content["data"], content["date"], content["model"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{os.fspath(path)} does not hold figures ({type(error).__name__}: {error}). Make "
            f"them: aloof evaluate MODEL DATA --json > {os.fspath(path)}"
        ) from error


def digests(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Return the SHA-256 of the files of a model folder."""
    found = {}
    for name in _FILES:
        try:
            with (Path(folder) / name).open("rb") as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ModelError(f"{folder} is not an aloof model: {error}.") from error
    return found


def model_card(
    model: Model,
    folder: str | os.PathLike[str],
    *,
    name: str | None = None,
    license: str | None = None,
    use: str | None = None,
    figures: Sequence[Figures] = (),
) -> str:
    """Return the card of a model, in Markdown.

    Parameters
    ----------
    model
        What it is about.
    folder
        Where the model is.
    name
        Its heading; None: the name of the folder.
    license
        Of the model, such as "apache-2.0"; it is not that of aloof. None: unknown.
    use
        What the model is meant for, and what not. None: unknown.
    figures
        Of this model; those of another are an error.
    """
    files = digests(folder)
    same = identity(folder)
    for each in figures:
        if each.model != same:
            raise ModelError(
                f"The figures of {each.data} ({each.date}) are those of another model, or of "
                "this one before it was calibrated or refitted. Evaluate it again."
            )
    title = name or Path(os.path.realpath(folder)).name
    found = model.describe()
    parts = [
        _front_matter(model, title, license, figures),
        f"# {title}",
        f"{model.title}: scores {model.things} by how anomalous they are (higher is worse), "
        f"flags the worst, and says why. Made with aloof {found['versions']['aloof']}.",
        "## Intended use",
        use or f"{_UNKNOWN} Nobody has said what it is for and what it is not for.",
        "## What it is and what it learned from",
        _table(["", ""], model.facts()),
        "When it was trained: unknown. A model holds no date, so that the same data and seed "
        "give the same bytes.",
        *_columns(found),
        "## How good it is",
        *_figures(model, figures),
        "## Limits",
        "\n".join(f"- {words}" for words in _limits(model)),
        "## Use",
        f"```sh\naloof score {title} DATA --out scores.csv\naloof explain {title} DATA\n```",
        "## To make it again",
        "```\n" + "\n".join(found["again"]) + "\n```",
        "## Licence",
        (license or f"{_UNKNOWN} That of aloof (MIT) is the library's, not the model's.")
        + _licence_of_parts(model),
        "## Versions and digests",
        _table(["", "version"], sorted(found["versions"].items())),
        _table(["file", "SHA-256"], files.items()),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _front_matter(
    model: Model, title: str, license: str | None, figures: Sequence[Figures]
) -> str:
    """Return what model hubs read; text is quoted as JSON does, which YAML takes."""
    kind = {"rows": "tabular", "images": "images"}.get(model.things, model.things)
    lines = ["---", "library_name: aloof"]
    if license is not None:
        lines.append(f"license: {json.dumps(license)}")
    tags = ["anomaly-detection", "semi-supervised", kind, str(model.detector.method)]
    lines.append(f"tags: {json.dumps(tags)}")
    if figures:
        lines += ["model-index:", f"- name: {json.dumps(title)}", "  results:"]
    for each in figures:
        data = json.dumps(each.data)
        lines += [
            "  - task: {type: anomaly-detection, name: Anomaly detection}",
            f"    dataset: {{type: {data}, name: {data}}}",
            "    metrics:",
        ]
        for key, words in _MEASURES.items():
            if each.found[key] is not None:
                value = f"{each.found[key]:.4f}"
                lines.append(f"    - {{type: {key}, value: {value}, name: {words}}}")
    return "\n".join([*lines, "---"])


def _columns(found: Mapping[str, Any]) -> Iterator[str]:
    if columns := found.get("columns"):
        rows = [
            (c["name"], c["kind"], c["values"], f"{c['missing_share']:.1%}") for c in columns
        ]
        yield "### Columns"
        yield _table(["column", "kind", "in training", "missing"], rows)
    if dropped := found.get("dropped"):
        yield "Not used: " + ", ".join(f"`{n}` ({why})" for n, why in dropped.items()) + "."


def _figures(model: Model, figures: Sequence[Figures]) -> Iterator[str]:
    if not figures:
        yield (
            f"{_UNKNOWN} It was not evaluated for this card. With labelled {model.things} that "
            "it was not trained on: `aloof evaluate MODEL DATA --json > figures.json`, and "
            "`aloof card MODEL --figures figures.json`."
        )
        return
    rows = []
    for each in figures:
        found = each.found
        measures = (found[key] for key in _MEASURES)
        rows.append(
            (
                each.data,
                each.date,
                f"{found['n_anomalies']:,} of {found['n_anomalies'] + found['n_normal']:,}",
                *("-" if value is None else f"{value:.1%}" for value in measures),
                found["threshold"],
            )
        )
    names = ["data", "evaluated", "anomalies", *_MEASURES.values(), "flagging"]
    yield _table(names, rows)
    yield (
        "Whether it was trained on any of this data is unknown: nobody has checked. Precision "
        "and recall are those of the rule in the last column."
    )


def _licence_of_parts(model: Model) -> str:
    """Say which weights of others a model holds, if it does."""
    backbone = dict(model.facts()).get("Backbone")
    return "" if backbone is None else f" It holds weights of its backbone: {backbone}."


def _limits(model: Model) -> Iterator[str]:
    training, things = model.training, model.things
    n_anomalies = training.get("n_anomalies")
    if n_anomalies is None:
        yield f"What labels it learned from is {_UNKNOWN.lower()}"
    elif n_anomalies:
        yield (
            f"It learned from {count(n_anomalies, 'labelled anomaly', 'labelled anomalies')}. "
            "Whether these cover the kinds there are is unknown; other kinds are found where "
            f"they are unlike normal {things}."
        )
    else:
        yield f"It learned from no labelled anomaly, only what most {things} look like."
    if unlabelled := training.get("n_unlabelled"):
        yield (
            f"{unlabelled:,} {things} without a label were treated as normal. Anomalies hidden "
            "among them, if any, make it less sensitive to their kind."
        )
    known = model.detector.calibration_scores_
    if known is None:
        yield "It is not calibrated: it gives no p-values."
    else:
        yield (
            f"P-values come from {len(known):,} {things}: none can be below "
            f"{smallest_p(len(known)):.2g}. They hold for {things} that come from where these "
            "came from."
        )
    if training.get("n_used", 0) < training.get("n_rows", 0):
        yield f"It was trained on a sample: {training['n_used']:,} of {training['n_rows']:,}."
    yield (
        f"{things.capitalize()} that have changed since training are scored as strange as "
        "they are: `aloof drift` and warnings of `aloof score` say where."
    )
    for words in training.get("warnings", ()):
        yield f"Said in training: {words}"


def _table(names: Sequence[str], rows: Any) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
