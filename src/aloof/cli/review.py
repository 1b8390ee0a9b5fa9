"""``aloof review``: the strangest rows on a web page, to be answered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.cli.group import fail
from aloof.cli.options import Data, Device, Model, Reviewer, Store, reviewer
from aloof.feedback.guide import POOL_SIZE
from aloof.feedback.store import AnswerStore
from aloof.review.access import Access, read_users
from aloof.review.server import make_app
from aloof.review.session import Review
from aloof.web.hosts import ANYWHERE, is_this_machine
from aloof.web.running import run

__all__ = ["review"]


def review(
    model: Model,
    data: Data,
    goal: Annotated[int, typer.Option(min=1, help="How many answers you aim at.")] = 50,
    pool: Annotated[
        int, typer.Option(min=1, help="How many of the strangest rows may be asked about.")
    ] = POOL_SIZE,
    train: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="What a refit learns from. Default: the training table."
        ),
    ] = None,
    by: Reviewer = None,
    store: Store = None,
    host: Annotated[
        str,
        typer.Option(help="Where to listen. Default: this machine alone can open the page."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="HOST",
            help="A name that others open the page under, such as review.example.org. "
            "Repeatable.",
        ),
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Reviewers, one in a line: a name, a space, a token of their own.",
        ),
    ] = None,
    user_header: Annotated[
        str | None,
        typer.Option(
            metavar="HEADER",
            help="A reverse proxy's header that names the reviewer, such as X-Forwarded-User. "
            "Only where nobody but the proxy can reach the page.",
        ),
    ] = None,
    device: Device = "auto",
) -> None:
    """Open a page with the strangest rows and their reasons, and answer by keyboard.

    The address that is printed has a token in it, which opens the page; only this machine can
    reach it unless **--host** says otherwise. Nothing is loaded from elsewhere. Answers are
    kept as **aloof label** keeps them, and several people may answer at once.

    Example: **aloof review model march.csv --by eve**

    For a team: **aloof review model march.csv --users reviewers.txt --host 0.0.0.0 --name
    review.example.org --store postgresql://db/answers**
    """
    if users is not None and user_header is not None:
        fail("--users and --user-header exclude each other.")
    access = Access(header=user_header)
    if users is not None:
        access = Access(token=None, users=read_users(users))
    with AnswerStore.of(model, store) as kept:
        typer.echo("Scoring...", err=True)
        session = Review(model, data, kept, goal=goal, size=pool, train=train, device=device)
        hosts = [*(name or ()), *([] if host in ANYWHERE or is_this_machine(host) else [host])]
        app = make_app(session, access, hosts=hosts, by=reviewer(by))

        def ready(found: int) -> None:
            shown = (name or [host if host not in ANYWHERE else "localhost"])[0]
            token = "YOUR-TOKEN" if access.token is None else access.token
            address = f"http://{shown}:{found}/"
            typer.echo(f"Open {address}?token={token}")
            typer.echo("Stop with Ctrl-C. What was answered is kept.", err=True)

        run(app, host=host, port=port, ready=ready)
