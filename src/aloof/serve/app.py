"""The application: what can be asked, and how a request goes its way."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import numpy as np

from aloof._version import __version__
from aloof.exceptions import AloofError, MissingExtraError, ServingError
from aloof.serve.access import Access
from aloof.serve.answers import JSON, as_arrow, as_json, chosen_form
from aloof.serve.arrow import ARROW_STREAM
from aloof.serve.asking import content_of, read_query, seconds_given
from aloof.serve.batching import Queue
from aloof.serve.bodies import Budget, Gone, Held, linger, read_body, unpacked
from aloof.serve.inference import (
    HEADER_LENGTH,
    as_outputs,
    model_metadata,
    read_inputs,
    server_metadata,
)
from aloof.serve.limits import Limits, Refused, failure, refused_by
from aloof.serve.logs import say
from aloof.serve.metrics import Metrics
from aloof.serve.served import Asked, Rows, Scored
from aloof.serve.slots import Keeper, Slot, Slots
from aloof.serve.ways import (
    INLINE,
    SAFE_HEADERS,
    TURNED_AWAY,
    TURNED_AWAY_HEADERS,
    Admitted,
    Way,
    find_way,
)

try:
    from fastapi import FastAPI, Request, Response
    from starlette.exceptions import HTTPException
except ImportError as error:
    raise MissingExtraError("fastapi", "serve", "The server") from error

from aloof.serve.openapi import describe_api

__all__ = ["Server"]

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_READERS = 2
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Server:
    """The application, and all that belongs to it. It is called as ASGI says.

    Parameters
    ----------
    slots
        The models, read already.
    access
        Who gets in.
    limits
        What requests may ask for.
    threads
        How many batches are scored at once.
    watch_seconds
        How often to look for new models; 0: only when asked to.
    drift_seconds
        How often to compare the latest rows with those of the training.
    """

    def __init__(
        self,
        slots: Slots,
        access: Access,
        limits: Limits,
        *,
        threads: int = 1,
        watch_seconds: float = 5.0,
        drift_seconds: float = 60.0,
    ) -> None:
        self.slots, self.access, self.limits = slots, access, limits
        self.metrics = Metrics(slots)
        self.budget = Budget(limits.memory)
        self.metrics.queue_limit.set(limits.queue)
        self.metrics.body_bytes.set_function(lambda: self.budget.used)
        self.metrics.queue_rows.set_function(lambda: self.queue.rows)
        for slot in slots.values():
            self.metrics.loaded(slot, "ok" if slot.served is not None else "failed")
        self.queue = Queue(
            limits, threads=threads, watch=self.metrics.batch, failed=self._failed
        )
        self.keeper = Keeper(
            slots,
            every=watch_seconds,
            drift_every=drift_seconds,
            loaded=self.metrics.loaded,
            drifted=self.metrics.drifted,
            before=self._read_tokens,
        )
        self.unanswered = 0
        self._readers = ThreadPoolExecutor(_READERS, "reading")
        self._app = self._routes()

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Answer a request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        way = find_way(scope["path"])
        if way is not None and self.is_full:
            await self._turn_away(way, send)
            return
        started, status = time.monotonic(), 0
        headers = dict(scope["headers"])

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *SAFE_HEADERS]
            await send(message)

        route = "other"
        try:
            self.access.check(scope["path"], headers)
            if way is None:
                await self._app(scope, receive, watched)
                route = getattr(scope.get("route"), "path", "other")
            else:
                route = way.route
                kind, body = await self._scored(way, scope, headers, receive)
                start = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
                await watched({"type": "http.response.start", "status": 200, "headers": start})
                await watched({"type": "http.response.body", "body": body})
        except Gone:
            status = 499
        except Refused as refused:
            await self._refuse(refused, scope, receive, watched)
        except Exception as error:
            self._failed(error)
            if not status:
                await self._refuse(failure(), scope, receive, watched)
        finally:
            self.metrics.answered(route, status, time.monotonic() - started)

    @property
    def is_full(self) -> bool:
        """Whether more requests are refused before they are read."""
        return self.unanswered >= self.limits.requests

    async def _turn_away(self, way: Way, send: _Send) -> None:
        """Refuse a request for which there is no room, with as little work as possible.

        The more of them there are, the less time is left for those that are answered.
        """
        headers = [*TURNED_AWAY_HEADERS, (b"retry-after", self.retry_after())]
        await send({"type": "http.response.start", "status": 429, "headers": headers})
        await send({"type": "http.response.body", "body": TURNED_AWAY})
        self.metrics.answered(way.route, 429, 0.0)

    def retry_after(self) -> bytes:
        """Return in how many seconds to come back, at random."""
        return b"%d" % (1 + secrets.randbelow(2 + int(2 * self.queue.seconds)))

    async def _refuse(
        self, refused: Refused, scope: _Scope, receive: _Receive, send: _Send
    ) -> None:
        body = json.dumps({"error": refused.words}).encode()
        headers = refused.head(len(body))
        if refused.close:
            headers.append((b"connection", b"close"))
        start = {"type": "http.response.start", "status": refused.status, "headers": headers}
        await send(start)
        if scope["method"] == "HEAD":
            body = b""
        await send({"type": "http.response.body", "body": body, "more_body": True})
        if refused.close:
            await linger(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    # Scoring

    def admit(self, way: Way, scope: _Scope, headers: dict[bytes, bytes]) -> Admitted:
        """Refuse a request for scores, by what it says before its body, or let it in."""
        if scope["method"] != "POST":
            raise Refused(405, "Scores are asked for by POST.", headers={"allow": "POST"})
        asked, form = Asked(), JSON
        render: Callable[..., bytes] = as_json
        if way.infers:
            self._check_version(str(way.name), way.version)
        else:
            asked = read_query(scope["query_string"])
            form = chosen_form(headers.get(b"accept", b"*/*").decode("latin-1"))
            render = as_arrow if form == ARROW_STREAM else as_json
        slot = self.slots.find(way.name)
        served = slot.ready()
        deadline = time.monotonic() + seconds_given(headers, self.limits.request_seconds)
        self.queue.check(1, deadline)
        return Admitted(slot, served, asked, form.encode(), render, deadline)

    def finish(self, admitted: Admitted, scored: Scored) -> bytes:
        """Return the answer to a request, and count it."""
        flagged = decided = int(np.count_nonzero(scored.flagged))
        if scored.suppressed_by is not None:
            decided = int(np.count_nonzero(scored.decided))
        name = admitted.slot.name
        self.metrics.scored(name, len(scored.scores), flagged, decided - flagged)
        return admitted.render(scored, model=name, version=admitted.served.version)

    async def _scored(
        self, way: Way, scope: _Scope, headers: dict[bytes, bytes], receive: _Receive
    ) -> tuple[bytes, bytes]:
        """Return the media type and the body of the answer to a request for scores."""
        admitted = self.admit(way, scope, headers)
        with Held(self.budget) as held:
            # Whoever takes long to send a body takes nobody's place meanwhile.
            data = await read_body(headers, receive, self.limits, held)
            self.unanswered += 1
            try:
                if coding := headers.get(b"content-encoding", b"").decode("latin-1"):
                    coding = coding.strip().lower()
                    data = await self._aside(unpacked, data, coding, self.limits)
                    held.take(len(data))
                try:
                    rows = await self._read(way, admitted, headers, data)
                except AloofError as error:
                    raise refused_by(error) from error
                answer: bytes = await self.queue.score(
                    admitted.served, rows, partial(self.finish, admitted), admitted.deadline
                )
            finally:
                self.unanswered -= 1
        return admitted.form, answer

    async def _read(
        self, way: Way, admitted: Admitted, headers: dict[bytes, bytes], data: bytes
    ) -> Rows:
        """Return the rows of a request; of a large one, without holding up the others."""
        if way.infers:
            inference = partial(self._read_inference, admitted, headers, data)
            return await self._aside(inference) if len(data) > INLINE else inference()
        content = content_of(data, headers.get(b"content-type", b""))
        if len(data) > INLINE or content.kind != JSON:
            found: Rows = await self._aside(admitted.served.read, content, admitted.asked)
            return found
        rows: Rows = admitted.served.read(content, admitted.asked)
        return rows

    def _read_inference(
        self, admitted: Admitted, headers: dict[bytes, bytes], data: bytes
    ) -> Rows:
        said, tensors, asked = read_inputs(data, headers.get(HEADER_LENGTH), self.limits)
        admitted.render = partial(as_outputs, request=said)
        rows: Rows = admitted.served.read_tensors(tensors, asked)
        return rows

    async def _aside(self, function: Callable[..., Any], *args: Any) -> Any:
        """Do something in a thread, so that the loop goes on."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, function, *args)

    # What else can be asked

    def _routes(self) -> FastAPI:
        @asynccontextmanager
        async def lifespan(app: FastAPI) -> AsyncIterator[None]:
            self.keeper.start()
            yield
            say("stopping", waiting_rows=self.queue.rows)
            await asyncio.to_thread(self.stop)

        app = FastAPI(
            title="aloof",
            version=__version__,
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            lifespan=lifespan,
        )

        @app.exception_handler(HTTPException)
        async def wrong(request: Request, problem: HTTPException) -> Response:
            return _json({"error": str(problem.detail)}, problem.status_code, problem.headers)

        @app.exception_handler(Refused)
        async def refuse(request: Request, problem: Refused) -> Response:
            return _Refusal(self, problem)

        @app.exception_handler(Exception)
        async def failed(request: Request, problem: Exception) -> Response:
            return _Refusal(self, failure())

        @app.get("/healthz")
        async def healthz() -> Response:
            return _json({"alive": True})

        @app.get("/readyz")
        async def readyz(request: Request) -> Response:
            return self._readiness(dict(request.scope["headers"]))

        @app.get("/model")
        async def model() -> Response:
            return await self._described(self.slots.find(None))

        @app.get("/models")
        async def models() -> Response:
            return _json({"models": [self._state(slot) for slot in self.slots.values()]})

        @app.get("/models/{name}")
        async def model_by(name: str) -> Response:
            return await self._described(self.slots.find(name))

        @app.post("/models/{name}/reload")
        async def reload(name: str) -> Response:
            slot = self.slots.find(name)
            result = await asyncio.to_thread(slot.refresh, force=True)
            self.metrics.loaded(slot, result)
            return _json(self._state(slot), 200 if result == "ok" else 409)

        @app.get("/metrics")
        async def metrics() -> Response:
            return Response(self.metrics.text(), media_type=_TEXT)

        @app.get("/openapi.json")
        async def openapi() -> Response:
            return _json(describe_api(app, self.slots, self.limits, self.access.has_tokens))

        @app.get("/v2")
        async def v2() -> Response:
            return _json(server_metadata())

        @app.get("/v2/health/live")
        async def v2_live() -> Response:
            return _json({"live": True})

        @app.get("/v2/health/ready")
        async def v2_ready() -> Response:
            return self._readiness({})

        async def v2_model(name: str, version: str | None = None) -> Response:
            self._check_version(name, version)
            return _json(model_metadata(name, self.slots.find(name).ready()))

        async def v2_model_ready(name: str, version: str | None = None) -> Response:
            self._check_version(name, version)
            served = self.slots.find(name).ready()
            return _json({"name": name, "version": served.version, "ready": True})

        for path, function in (("", v2_model), ("/ready", v2_model_ready)):
            app.get("/v2/models/{name}" + path)(function)
            app.get("/v2/models/{name}/versions/{version}" + path)(function)
        return app

    def _check_version(self, name: str, version: str | None) -> None:
        served = self.slots.find(name).ready()
        if version is not None and version != served.version:
            raise Refused(404, f"Version {served.version} of {name} is in use.")

    def _readiness(self, headers: dict[bytes, bytes]) -> Response:
        ready = all(slot.served is not None for slot in self.slots.values())
        said: dict[str, Any] = {"ready": ready}
        if not self.access.has_tokens or self.access.who(headers) is not None:
            said["models"] = [self._state(slot) for slot in self.slots.values()]
        return _json(said, 200 if ready else 503, None if ready else {"Retry-After": "2"})

    def _state(self, slot: Slot) -> dict[str, Any]:
        return {
            "name": slot.name,
            "ready": slot.served is not None,
            "version": None if slot.served is None else slot.served.version,
            "stale": bool(slot.problem) and slot.served is not None,
            "problem": slot.problem,
        }

    async def _described(self, slot: Slot) -> Response:
        served = slot.ready()
        said = await self._aside(served.model.describe)
        return _json({**self._state(slot), "takes": served.takes, "model": said})

    # Whatever happens

    def _failed(self, error: BaseException) -> None:
        self.metrics.errors.inc()
        logging.getLogger("aloof.serve").error(
            "error", exc_info=(type(error), error, error.__traceback__)
        )

    def _read_tokens(self) -> None:
        try:
            self.access.read_again()
        except ServingError as error:
            say("tokens cannot be read", level=logging.ERROR, problem=str(error))

    def stop(self) -> None:
        """Answer what waits, and end the threads."""
        self.queue.stop()
        if self.keeper.is_alive():
            self.keeper.stop()
        self._readers.shutdown(wait=False, cancel_futures=True)


class _Refusal(Response):
    """The answer to a request that is refused."""

    def __init__(self, server: Server, refused: Refused) -> None:
        super().__init__(status_code=refused.status)
        self._server, self._refused = server, refused

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._server._refuse(self._refused, scope, receive, send)


def _json(content: Any, status: int = 200, headers: Any = None) -> Response:
    body = json.dumps(content, default=str).encode()
    return Response(body, status, headers, media_type=JSON)
