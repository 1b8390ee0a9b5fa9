"""``aloof versions``: what refits made of a model, and the way back."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from aloof.cli.group import fail
from aloof.cli.options import Json, Model
from aloof.feedback.versions import Version, list_versions, use_version

__all__ = ["versions"]


def versions(
    model: Model,
    use: Annotated[
        int | None, typer.Option("--use", metavar="NUMBER", help="Put this version in use.")
    ] = None,
    rollback: Annotated[
        bool,
        typer.Option(
            "--rollback", help="Put the version in use that the present one was made from."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """List the versions of a model, or put another one in use. Nothing is trained.

    Example: **aloof versions model --rollback**
    """
    if use is not None and rollback:
        fail("--use and --rollback exclude each other.")
    known = list_versions(model)
    if rollback:
        present = next(version for version in known if version.is_present)
        if present.parent is None:
            fail(f"{model} is the first version: there is none before it.")
        use = present.parent
    if use is not None:
        use_version(model, use)
        known = list_versions(model)
    if as_json:
        listed = [
            {
                "version": version.number,
                "parent": version.parent,
                "is_used": version.is_present,
                "refit": version.training.get("refit"),
            }
            for version in known
        ]
        typer.echo(json.dumps(listed))
        return
    for version in known:
        mark = "*" if version.is_present else " "
        typer.echo(f"{mark} {version.number:>3}  {_words(version)}")


def _words(version: Version) -> str:
    refit = version.training.get("refit")
    if refit is None:
        return f"fitted with {version.training.get('n_anomalies', 0):,} labelled anomalies"
    return (
        f"from {version.parent}, refitted with {refit['n_anomalies']:,} rows answered as "
        f"anomalies and {refit['n_normal']:,} as normal"
    )
