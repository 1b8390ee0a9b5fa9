"""The page as an application: who gets in, what is sent, and what comes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from aloof.exceptions import AloofError, AnswerError, MissingExtraError
from aloof.feedback.asking import DEFAULT_WAY, Way
from aloof.phrases import count
from aloof.review.access import Access
from aloof.review.session import Review
from aloof.web.hosts import host_of, is_this_machine

try:
    import jinja2
    from fastapi import FastAPI, Query, Request, Response
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
    from pydantic import BaseModel, ConfigDict, Field
except ImportError as error:
    raise MissingExtraError("fastapi", "review", "The review page") from error

__all__ = ["make_app"]

_HERE = Path(__file__).parent
_COOKIE, _PROOF = "aloof_review", "x-aloof-review"
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STATIC = {
    "review.js": "text/javascript",
    "review.css": "text/css",
    "icon.svg": "image/svg+xml",
}
_LARGEST = 1_000_000  # bytes of a request
_Next = Callable[[Request], Awaitable[Response]]

_Text = Annotated[str, Field(max_length=1000)]
_Row = Annotated[list[_Text], Field(min_length=2, max_length=2)]
_Name = Annotated[str, Field(max_length=100, pattern=r"^[0-9a-zA-Z-]*$")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    by: Annotated[str, Field(max_length=100)] = ""
    request: _Name = ""


class _Given(_Body):
    rows: Annotated[list[_Row], Field(min_length=1, max_length=1000)]
    label: Annotated[int, Field(ge=-1, le=1)]
    note: Annotated[str, Field(max_length=10_000)] = ""


class _Suppress(_Body):
    column: _Text
    value: Annotated[str, Field(max_length=10_000)]
    until: Annotated[str, Field(pattern=r"^(\d{4}-\d{2}-\d{2})?$")] = ""
    note: Annotated[str, Field(max_length=10_000)] = ""


class _Lift(_Body):
    number: int


# FastAPI looks these up by name.
_Json = dict[str, Any]


def make_app(
    review: Review, access: Access, *, hosts: Sequence[str] = (), by: str = ""
) -> FastAPI:
    """Return the application.

    Parameters
    ----------
    review
        What is shown.
    access
        Who gets in.
    hosts
        Names that the page may be asked for under, besides those of this machine itself; a
        request under another name comes from a page that wants to trick a browser.
    by
        Who answers, until somebody says otherwise.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    allowed = {host.lower() for host in hosts}

    @app.middleware("http")
    async def guard(request: Request, proceed: _Next) -> Response:
        response = await _admitted(request, proceed, access, allowed)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    @app.exception_handler(AloofError)
    async def refused(request: Request, problem: AloofError) -> Response:
        return JSONResponse({"error": " ".join(str(problem).split())}, 409)

    @app.exception_handler(RequestValidationError)
    async def wrong(request: Request, problem: RequestValidationError) -> Response:
        return JSONResponse({"error": "The request is not one of the page's."}, 400)

    @app.get("/")
    def page(request: Request) -> Response:
        token, name = _who(request, access)
        template = environment.get_template("review.html")
        pool = review.pool
        content = template.render(
            proof=access.proof(token),
            by=name or by,
            named=bool(name),
            model=review.path.name,
            data=Path(review.data).name,
            rows=count(pool.n_rows, pool.things.removesuffix("s")),
            things=pool.things,
        )
        return HTMLResponse(content)

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in _STATIC:
            return JSONResponse({"error": "There is no such file."}, 404)
        content = (_HERE / "static" / name).read_bytes()
        return Response(content, media_type=_STATIC[name])

    @app.get("/picture/{place}")
    def picture(place: int) -> Response:
        content = review.picture(place)
        if content is None:
            return JSONResponse({"error": "There is no such picture."}, 404)
        return Response(content, media_type="image/png")

    @app.get("/api/state")
    def state(
        request: Request,
        way: Way = DEFAULT_WAY,
        search: Annotated[str, Query(max_length=200)] = "",
        show: Literal["open", "answered", "all"] = "open",
        by: Annotated[str, Query(max_length=100)] = "",
    ) -> _Json:
        name = _who(request, access)[1] or by
        return review.state(way=way, search=search, show=show, by=name)

    @app.post("/api/answer")
    def answer(request: Request, body: _Given) -> _Json:
        name = _named(request, access, body)
        keys = [(source, row) for source, row in body.rows]
        numbers = review.answer(keys, body.label, by=name, note=body.note, request=body.request)
        return {"numbers": numbers}

    @app.post("/api/undo")
    def undo(request: Request, body: _Body) -> _Json:
        taken = review.undo(by=_named(request, access, body), request=body.request)
        return {
            "undone": None
            if taken is None
            else {"source": taken.source, "row": taken.row, "word": taken.word}
        }

    @app.post("/api/rule")
    def rule(request: Request, body: _Suppress) -> _Json:
        try:
            day = datetime.strptime(body.until, "%Y-%m-%d").date() if body.until else None
        except ValueError:
            raise AnswerError(f"{body.until} is no date.") from None
        until = None if day is None else datetime.combine(day, time.max, UTC)
        name = _named(request, access, body)
        number = review.suppress(
            body.column,
            body.value,
            by=name,
            until=until,
            note=body.note,
            request=body.request,
        )
        return {"number": number}

    @app.post("/api/lift")
    def lift(request: Request, body: _Lift) -> _Json:
        return {"lifted": review.store.lift_rule(body.number, by=_named(request, access, body))}

    @app.post("/api/refit")
    def start_refit(body: _Body) -> _Json:
        review.start_refit()
        return {}

    @app.post("/api/calibrate")
    def calibrate(body: _Body) -> _Json:
        return {"version": review.calibrate()}

    @app.post("/api/accept")
    def accept(body: _Body) -> _Json:
        return {"version": review.accept()}

    @app.post("/api/dismiss")
    def dismiss(body: _Body) -> _Json:
        review.dismiss()
        return {}

    @app.post("/api/rollback")
    def roll_back(body: _Body) -> _Json:
        return {"version": review.roll_back()}

    return app


async def _admitted(
    request: Request, proceed: _Next, access: Access, hosts: set[str]
) -> Response:
    """Let a request through, or say why not."""
    host = host_of(request.headers.get("host", ""))
    if host not in hosts and not is_this_machine(host):
        return JSONResponse({"error": "The page is not asked for under this name."}, 421)
    given = request.query_params.get("token")
    if given is not None and request.method == "GET" and request.url.path == "/":
        if not access.opens(given):
            return _locked()
        answer = RedirectResponse("/", 303)
        answer.set_cookie(_COOKIE, given, httponly=True, samesite="strict", path="/")
        return answer
    token, name = _who(request, access)
    if not access.opens(token) and not (access.header and name):
        return _locked()
    if request.method not in ("GET", "HEAD"):
        origin = request.headers.get("origin")
        same = origin is None or urlsplit(origin).netloc == request.headers.get("host")
        site = request.headers.get("sec-fetch-site", "same-origin")
        if not same or site != "same-origin":
            return JSONResponse({"error": "The request comes from another page."}, 403)
        if not access.proves(token, request.headers.get(_PROOF)):
            return JSONResponse({"error": "Load the page again."}, 403)
        kind = request.headers.get("content-type", "").split(";")[0].strip()
        if kind != "application/json":
            return JSONResponse({"error": "The request is not one of the page's."}, 415)
        length = request.headers.get("content-length", "")
        if not length.isdigit() or int(length) > _LARGEST:
            return JSONResponse({"error": "The request is too large."}, 413)
    return await proceed(request)


def _locked() -> Response:
    words = "Open the address that aloof review printed: it has the token that opens this page."
    return HTMLResponse(f"<!doctype html><title>aloof</title><p>{words}</p>", 401)


def _who(request: Request, access: Access) -> tuple[str, str]:
    """Return the token of a request, and the name of who sent it, if it is known."""
    if access.header and (name := request.headers.get(access.header, "").strip()):
        return "", name[:100]
    token = request.cookies.get(_COOKIE, "")
    return token, access.name_of(token)


def _named(request: Request, access: Access, body: _Body) -> str:
    """Return who answers: what the token or the proxy says, or what they call themselves."""
    name = _who(request, access)[1] or body.by.strip()
    if not name:
        raise AnswerError("Say who you are first.")
    return name
