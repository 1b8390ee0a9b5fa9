"""An application that runs until it is told to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aloof.exceptions import MissingExtraError

try:
    import uvicorn
except ImportError as error:
    raise MissingExtraError("uvicorn", "review", "A web page of aloof") from error

__all__ = ["run"]


def run(
    app: Any, *, host: str, port: int, ready: Callable[[int], None], **options: Any
) -> None:
    """Run until it is interrupted; requests that were accepted are answered first.

    Nothing is logged of requests, and no header says what runs here.

    Parameters
    ----------
    app
        An ASGI application.
    host, port
        Where to listen; port 0: any that is free.
    ready
        Called with the port when it can be reached.
    **options
        Of `uvicorn.Config`, such as ``ssl_certfile``.
    """
    quiet: dict[str, Any] = {"log_level": "warning"}
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        access_log=False,
        server_header=False,
        **{**quiet, **options},
    )

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready(self.servers[0].sockets[0].getsockname()[1])

    Server(config).run()
