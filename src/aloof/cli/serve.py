"""``aloof serve``: models behind an HTTP server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.cli.group import fail
from aloof.cli.options import Device, Store
from aloof.processors import available_processors
from aloof.serve.access import Access
from aloof.serve.app import Server
from aloof.serve.limits import Limits
from aloof.serve.logs import start_logging
from aloof.serve.running import run_server
from aloof.serve.slots import Slots
from aloof.web.hosts import ANYWHERE

__all__ = ["serve"]

_MIB = 2**20


def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="The folders with the models, or NAME=FOLDER. The name is that of the folder "
            "by default.",
        ),
    ],
    host: Annotated[
        str, typer.Option(help="Where to listen. Default: only this machine can ask.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Who may ask, one in a line: a name, a space, a token of at least 16 "
            "characters. Needed if others can reach --host.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For TLS: the certificate (PEM).")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For TLS: its private key (PEM).")
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="HOST",
            help="A name that the server is asked for under, if it has no tokens. Repeatable.",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="Batches to score at once. Default: half the processors, at least 1."
        ),
    ] = None,
    watch: Annotated[
        float,
        typer.Option(
            min=0,
            help="Seconds between two looks at the model folders. 0: only on SIGHUP or "
            "POST /models/NAME/reload.",
        ),
    ] = 5.0,
    ignore_rules: Annotated[
        bool,
        typer.Option(
            "--ignore-rules", help="Flag rows, too, that reviewers know to be harmless."
        ),
    ] = False,
    store: Store = None,
    max_body: Annotated[int, typer.Option(min=1, help="MiB of a request.")] = 16,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows or images of a request.")] = 10_000,
    max_queue: Annotated[
        int, typer.Option(min=1, help="Rows that may wait; more are refused at once.")
    ] = 20_000,
    max_batch: Annotated[
        int, typer.Option(min=1, help="Rows of all requests that are scored together.")
    ] = 2048,
    max_seconds: Annotated[
        float,
        typer.Option(
            min=0.1, help="Seconds for a request; clients ask for less with X-Timeout-Ms."
        ),
    ] = 30.0,
    device: Device = "auto",
) -> None:
    """Answer requests with anomaly scores, p-values, decisions and reasons.

    **POST /score** takes rows as JSON, CSV or Arrow, images as PNG or JPEG, and text. With
    several models: **POST /models/NAME/score**. **GET /openapi.json** describes it all, and
    **/metrics** is for Prometheus. KServe and Triton clients find the Open Inference Protocol
    under **/v2**.

    Requests are scored together. If more come than can be scored, they are refused at once,
    with the time to come back. If a model folder changes, the new model takes over once it
    has scored its probe rows, and no request is lost. If it cannot be used, the old one stays.

    Example: **aloof serve model**, then **curl localhost:8000/score --json
    '{"rows": [{"amount": 12.5, "country": "NO"}]}'**

    For others: **aloof serve model --host 0.0.0.0 --tokens tokens.txt --certificate tls.crt
    --key tls.key**
    """
    if (certificate is None) != (key is None):
        fail("--certificate and --key go together.")
    for file in (certificate, key):
        if file is not None and not file.is_file():
            fail(f"There is no file {file}.")
    limits = Limits(
        body=max_body * _MIB,
        unpacked=4 * max_body * _MIB,
        memory=16 * max_body * _MIB,
        rows=max_rows,
        queue=max(max_queue, max_rows),
        batch=max_batch,
        request_seconds=max_seconds,
    )
    start_logging()
    access = Access(host, tokens, name or ())
    slots = Slots(models, limits, device, store=store, ignores_rules=ignore_rules)
    slots.load()
    server = Server(
        slots,
        access,
        limits,
        threads=threads or max(1, available_processors() // 2),
        watch_seconds=watch,
    )

    def ready(found: int) -> None:
        shown = "localhost" if host in ANYWHERE else host
        scheme = "http" if certificate is None else "https"
        typer.echo(f"Listening on {scheme}://{shown}:{found}. Stop with Ctrl-C.")

    run_server(
        server,
        host=host,
        port=port,
        certificate=None if certificate is None else str(certificate),
        key=None if key is None else str(key),
        ready=ready,
    )
