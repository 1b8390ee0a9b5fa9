"""A server from the first look at its models to its last answer."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from typing import Any

from aloof.serve.app import Server
from aloof.serve.garbage import setting_aside
from aloof.serve.logs import say
from aloof.serve.patience import protocol
from aloof.serve.shortcut import Shortcut
from aloof.serve.warned import keeping_quiet
from aloof.web.hosts import is_this_machine
from aloof.web.running import run

__all__ = ["run_server", "uvicorn_options"]

# How soon another thread has its turn: the loop must not wait for those that score.
_SWITCH_SECONDS = 0.0002
_BACKLOG = 2048


def run_server(
    server: Server,
    *,
    host: str,
    port: int,
    certificate: str | None = None,
    key: str | None = None,
    shutdown_seconds: int = 30,
    ready: Callable[[int], None] = lambda port: None,
) -> None:
    """Run until it is told to stop (SIGINT, SIGTERM); SIGHUP looks for new models and tokens.

    Parameters
    ----------
    server
        The application.
    host, port
        Where to listen; port 0: any that is free.
    certificate, key
        Files for TLS.
    shutdown_seconds
        How long requests that were accepted may take at the end.
    ready
        Called with the port when requests are taken.
    """
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda number, frame: server.keeper.look())
    if server.access.has_tokens and certificate is None and not is_this_machine(host):
        say("tokens travel in the clear without TLS", level=logging.WARNING, host=host)

    def tell(found: int) -> None:
        say("listening", host=host, port=found, models=[*server.slots])
        ready(found)

    options: dict[str, Any] = uvicorn_options(server)
    if certificate is not None:
        options |= {"ssl_certfile": certificate, "ssl_keyfile": key}
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        with keeping_quiet(), setting_aside():
            run(
                server,
                host=host,
                port=port,
                ready=tell,
                timeout_graceful_shutdown=shutdown_seconds,
                **options,
            )
    finally:
        sys.setswitchinterval(before)
        server.stop()
        say("stopped")


def uvicorn_options(server: Server) -> dict[str, Any]:
    """Return what uvicorn has to know."""
    limits = server.limits
    return {
        "http": protocol(limits, Shortcut(server)),
        "ws": "none",
        # Under overload with busy processors, refusals waited for seconds with uvloop, and for
        # a fraction of one with this loop.
        "loop": "asyncio",
        "timeout_keep_alive": int(limits.idle_seconds),
        "backlog": _BACKLOG,
        "log_config": None,
        "date_header": False,
        "proxy_headers": False,
        "interface": "asgi3",
    }
