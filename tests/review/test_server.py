"""The page's requests: who gets in, what is refused, and what answers do."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pytest
from full_disk import FullDisk

import aloof as package
from aloof.exceptions import AnswerError, DriftWarning
from aloof.feedback.store import AnswerStore
from aloof.feedback.versions import present_version
from aloof.review.access import Access, read_users
from aloof.review.session import Review


class Browser:
    """Sends requests as a page would, or as somebody else would."""

    def __init__(self, page: Any, **headers: str) -> None:
        self._host = urlsplit(page.url).netloc
        self.access, self.cookie, self.headers = page.access, "", headers

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        connection = http.client.HTTPConnection(self._host, timeout=60)
        sent = {"Cookie": self.cookie, **self.headers}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {k: v for k, v in sent.items() if v})
        found = connection.getresponse()
        text = found.read().decode()
        connection.close()
        self.last = found
        is_json = "json" in (found.getheader("Content-Type") or "")
        return found.status, json.loads(text) if is_json else text

    def enter(self, token: str | None = None) -> Browser:
        query = urlencode({"token": token or self.access.token})
        status, _ = self.ask("GET", f"/?{query}")
        assert status == 303
        self.cookie = (self.last.getheader("Set-Cookie") or "").split(";")[0]
        return self

    def post(self, path: str, body: dict[str, Any], **headers: str) -> Any:
        token = self.cookie.partition("=")[2]
        proof = {"X-Aloof-Review": self.access.proof(token), "Content-Type": "application/json"}
        return self.ask("POST", path, {"by": "eve", **body}, **{**proof, **headers})

    def state(self, **query: str) -> Any:
        status, found = self.ask("GET", f"/api/state?{urlencode({'by': 'eve', **query})}")
        assert status == 200, found
        return found


def test_nobody_gets_in_without_the_token(open_page: Callable[..., Any]) -> None:
    with open_page() as page:
        stranger = Browser(page)
        for path in ("/", "/api/state", "/static/review.js", "/picture/0", "/?token=wrong"):
            status, text = stranger.ask("GET", path)
            assert status == 401
            assert page.access.token not in str(text)
        stranger.cookie = "aloof_review=guess"
        assert stranger.ask("GET", "/")[0] == 401
        assert stranger.post("/api/answer", {"rows": [["", "n3"]], "label": 1})[0] == 401
        assert page.store.events() == []
        guest = Browser(page).enter()
        cookie = guest.last.getheader("Set-Cookie")
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert guest.last.getheader("Location") == "/"
        assert guest.ask("GET", "/")[0] == 200


def test_headers_forbid_what_the_page_does_not_need(open_page: Callable[..., Any]) -> None:
    with open_page() as page:
        guest = Browser(page).enter()
        guest.ask("GET", "/")
        policy = guest.last.getheader("Content-Security-Policy")
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert guest.last.getheader("Referrer-Policy") == "no-referrer"
        assert guest.last.getheader("Cache-Control") == "no-store"
        assert guest.last.getheader("Server") is None or "uvicorn" in str(
            guest.last.getheader("Server")
        )


def test_requests_from_other_pages_are_refused(open_page: Callable[..., Any]) -> None:
    with open_page() as page:
        guest = Browser(page).enter()
        body = {"rows": [["", "n3"]], "label": 1}
        for headers in (
            {"Origin": "http://evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"X-Aloof-Review": ""},
            {"X-Aloof-Review": "0" * 64},
            {"Content-Type": "text/plain"},
            {"Content-Type": "application/x-www-form-urlencoded"},
        ):
            status, _ = guest.post("/api/answer", body, **headers)
            assert status in (403, 415), headers
        assert guest.ask("GET", "/", Host="evil.example")[0] == 421
        assert page.store.events() == []
        assert guest.post("/api/answer", body)[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        {"rows": [], "label": 1},
        {"rows": [["", "n3"]], "label": 5},
        {"rows": [["", "n3"]], "label": "1"},
        {"rows": [["", "n3"]], "label": True},
        {"rows": [["", "n3"]], "label": 1, "admin": True},
        {"rows": [["", "n3"]], "label": 1, "note": "x" * 10_001},
        {"rows": [["", "nobody"]], "label": 1},
        {"rows": [["", "../../etc/passwd"]], "label": 1},
        {"rows": [["", "n3"]], "label": 1, "by": " "},
        {"rows": [["", "n3"]], "label": 1, "request": "a' OR 1=1"},
    ],
)
def test_answers_that_are_none_are_refused(
    open_page: Callable[..., Any], body: dict[str, Any]
) -> None:
    with open_page() as page:
        status, found = Browser(page).enter().post("/api/answer", body)
        assert status in (400, 409)
        assert found["error"]
        assert page.store.events() == []


def test_paths_lead_nowhere_else(open_page: Callable[..., Any]) -> None:
    with open_page() as page:
        guest = Browser(page).enter()
        for path in (
            "/static/../server.py",
            "/static/..%2fserver.py",
            "/static/%2e%2e/access.py",
            "/static//etc/passwd",
            "/picture/-1",
            "/picture/10000000",
            "/docs",
            "/openapi.json",
        ):
            assert guest.ask("GET", path)[0] in (400, 404), path


def test_rows_are_answered_undone_and_seen_by_others(open_page: Callable[..., Any]) -> None:
    with open_page() as page:
        eve, bob = Browser(page).enter(), Browser(page).enter()
        first = eve.state()["rows"][0]
        assert first["reasons"]
        assert first["values"]
        key = [first["source"], first["row"]]
        body = {"rows": [key], "label": 1, "note": "odd", "request": "r1"}
        status, found = eve.post("/api/answer", body)
        assert status == 200
        assert eve.post("/api/answer", body)[1] == found  # the same again
        assert len(page.store.events()) == 1
        assert page.store.events()[0].values["host"] == dict(first["values"])["host"]
        assert first["row"] not in [row["row"] for row in eve.state()["rows"]]
        (seen,) = [r for r in bob.state(by="bob")["rows"] if r["row"] == first["row"]]
        assert seen["answers"][0]["by"] == "eve"
        assert seen["answers"][0]["note"] == "odd"
        bob.post("/api/answer", {"rows": [key], "label": 0, "by": "bob"})
        assert bob.state()["progress"]["conflicts"] == 1
        assert eve.post("/api/undo", {})[1]["undone"]["row"] == first["row"]
        progress = eve.state()["progress"]
        assert (progress["answered"], progress["normal"], progress["found"]) == (1, 1, 0)


def test_rules_hide_rows_and_say_how_many(open_page: Callable[..., Any]) -> None:
    with open_page() as page:
        eve = Browser(page).enter()
        before = eve.state()["n_listed"]
        day = (date.today() + timedelta(days=3)).isoformat()
        body = {"column": "host", "value": "backup01", "until": day, "note": "nightly"}
        assert eve.post("/api/rule", body)[0] == 200
        state = eve.state()
        (rule,) = state["rules"]
        assert rule["hides"] == before - state["n_listed"] > 0
        assert rule["until"] == day
        assert all(dict(row["values"])["host"] != "backup01" for row in state["rows"])
        assert eve.state(show="all")["n_listed"] == before
        assert eve.post("/api/lift", {"number": rule["number"]})[1] == {"lifted": True}
        assert eve.state()["n_listed"] == before
        assert eve.post("/api/rule", {**body, "column": "nowhere"})[0] == 409
        assert eve.post("/api/rule", {**body, "until": "2026-02-31"})[0] == 409


def test_ways_of_asking_and_search(open_page: Callable[..., Any]) -> None:
    with open_page() as page:
        eve = Browser(page).enter()
        ranks = [row["rank"] for row in eve.state(way="anomalous")["rows"]]
        assert ranks == sorted(ranks)
        mixed = eve.state(way="mix")["rows"]
        assert [row["why"] for row in mixed[:3]] == ["anomalous", "anomalous", "informative"]
        assert {row["why"] for row in eve.state(way="informative")["rows"]} == {"informative"}
        found = eve.state(search="BACKUP01")["rows"]
        assert found
        assert all("backup01" in str(row["values"]) for row in found)
        assert eve.ask("GET", "/api/state?way=guess")[0] == 400


def test_a_refit_is_compared_accepted_and_rolled_back(open_page: Callable[..., Any]) -> None:
    with open_page() as page:
        eve = Browser(page).enter()
        assert eve.post("/api/refit", {})[0] == 409  # no answers yet
        assert eve.post("/api/accept", {})[0] == 409
        rows = eve.state(way="anomalous")["rows"][:12]
        for label, part in ((1, rows[:8]), (0, rows[8:])):
            keys = [[row["source"], row["row"]] for row in part]
            assert eve.post("/api/answer", {"rows": keys, "label": label})[0] == 200
        assert eve.post("/api/refit", {})[0] == 200
        page.review.wait()
        state = eve.state()
        assert state["refit"]["state"] == "done", state["refit"]
        assert state["refit"]["comparison"]["alerts"]["n_rows"] == 400
        assert present_version(page.folder / "model") == 1
        assert eve.post("/api/accept", {})[1] == {"version": 2}
        state = eve.state(show="all")
        assert present_version(page.folder / "model") == 2
        assert state["version"] == {"number": 2, "parent": 1}
        assert any(row["was"] not in (None, row["rank"]) for row in state["rows"])
        assert eve.post("/api/rollback", {})[1] == {"version": 1}
        assert present_version(page.folder / "model") == 1
        assert eve.post("/api/rollback", {})[0] == 409
        assert len(page.store.standings()) == 12


def test_rows_that_are_not_as_in_training_are_said(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "model", tmp_path / "model")
    table = pa_csv.read_csv(made / "new.csv")
    moved = table.set_column(1, "a", pc.add(table["a"], 3.0))
    pa_csv.write_csv(moved, tmp_path / "moved.csv")
    with AnswerStore.of(tmp_path / "model") as store:
        same = Review(tmp_path / "model", str(made / "new.csv"), store, device="cpu")
        assert same.state()["drift"]["changed"] == []
        data = str(tmp_path / "moved.csv")
        with pytest.warns(DriftWarning, match="median"):
            other = Review(tmp_path / "model", data, store, device="cpu")
        names = [each["name"] for each in other.state()["drift"]["changed"]]
        assert "a" in names
        assert "b" not in names


def test_users_of_a_file_answer_under_their_own_name(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "users.txt"
    path.write_text("# reviewers\nEve Adams 0123456789abcdefE\nbob 0123456789abcdefB\n")
    access = Access(token=None, users=read_users(path))
    assert "0123456789" not in repr(access)
    with open_page(access) as page:
        eve = Browser(page).enter("0123456789abcdefE")
        assert Browser(page).ask("GET", "/?token=None")[0] == 401
        row = eve.state()["rows"][0]
        eve.post("/api/answer", {"rows": [["", row["row"]]], "label": 1, "by": "bob"})
        assert page.store.events()[0].by == "Eve Adams"
    for wrong in ("bob short\n", "\n", "a 0123456789abcdefE\nb 0123456789abcdefE\n"):
        path.write_text(wrong)
        with pytest.raises(AnswerError):
            read_users(path)


def test_a_proxy_names_the_reviewer(open_page: Callable[..., Any]) -> None:
    access = Access(token=None, header="X-Forwarded-User")
    with open_page(access, hosts=["review.example.org"]) as page:
        stranger = Browser(page)
        assert stranger.ask("GET", "/")[0] == 401
        known = Browser(page, **{"X-Forwarded-User": "eve"})
        assert known.ask("GET", "/", Host="review.example.org")[0] == 200
        row = known.state()["rows"][0]["row"]
        status, found = known.post("/api/answer", {"rows": [["", row]], "label": 0, "by": "x"})
        assert status == 200, found
        assert page.store.events()[0].by == "eve"


def test_images_are_shown_with_what_is_strange_about_them(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for folder, n in (("good", 40), ("new", 6)):
        (tmp_path / folder).mkdir()
        for k in range(n):
            pixels = rng.integers(100, 120, (16, 16)).astype(np.uint8)
            if folder == "new" and k == 3:
                pixels[4:9, 4:9] = 255
            image.fromarray(pixels).save(tmp_path / folder / f"{k}.png")
    quick = {"members": 1, "max_epochs": 2, "size": 16, "calibration": 0, "method": "vae"}
    package.fit(normal=str(tmp_path / "good"), **quick).save(tmp_path / "model")
    with AnswerStore.of(tmp_path / "model") as store:
        review = Review(tmp_path / "model", str(tmp_path / "new"), store, device="cpu")
        state = review.state(way="anomalous", by="eve")
        assert state["rows"][0]["row"].endswith("3.png")
        assert state["has_pictures"]
        picture = review.picture(state["rows"][0]["place"])
        assert picture is not None
        assert picture.startswith(b"\x89PNG")
        assert review.picture(6) is None
        review.answer([("new", state["rows"][0]["row"])], 1, by="eve")
        review.answer([("new", state["rows"][1]["row"])], 0, by="eve")
        assert review.state(by="eve")["progress"]["found"] == 1
        review.start_refit()
        review.wait()
        found = review.state(by="eve")["refit"]
        assert found["state"] == "done", found
        assert "Learned from 1 row" in found["words"][0]
        assert review.accept() == 2
        assert review.model.training["n_anomalies"] == 1
        assert review.roll_back() == 1


def test_calibrating_again_is_a_version_that_leaves_out_known_anomalies(
    open_page: Callable[..., Any],
) -> None:
    with open_page() as page:
        guest = Browser(page).enter()
        rows = guest.state(way="anomalous")["rows"]
        first = [[row["source"], row["row"]] for row in rows[:5]]
        assert guest.post("/api/answer", {"rows": first, "label": 1})[0] == 200
        before = page.review.model
        status, found = guest.post("/api/calibrate", {})
        assert (status, found) == (200, {"version": 2})
        now = page.review.model
        assert now.training["n_calibration"] == 395
        assert present_version(page.folder / "model") == 2
        assert now.training["parent"] == 1
        scores = now.detector.calibration_scores_
        assert scores.max() < min(row["score"] for row in rows[:5])
        assert before.detector.calibration_scores_.max() != scores.max()
        assert guest.post("/api/rollback", {})[1] == {"version": 1}


def test_the_command_prints_the_address_and_no_token_elsewhere(
    made: Path, tmp_path: Path
) -> None:
    shutil.copytree(made / "model", tmp_path / "model")
    script = "from aloof.cli import command; command()"
    data = str(made / "new.csv")
    server = subprocess.Popen(
        [sys.executable, "-c", script, "review", "model", data, "--by", "eve"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("Open http://127.0.0.1:"), server.communicate()
        address = line.split()[1]
        token = address.partition("token=")[2]
        page = SimpleNamespace(url=address.partition("/?")[0], access=Access(token=token))
        guest = Browser(page).enter()
        status, text = guest.ask("GET", "/")
        assert status == 200
        assert "new.csv" in text
        assert token not in text
    finally:
        server.send_signal(signal.SIGINT)
        rest, errors = server.communicate(timeout=30)
    assert token not in rest + errors
    assert "Traceback" not in errors


def test_answers_sent_again_while_the_database_is_away_are_kept_once(
    open_page: Callable[..., Any], postgresql: Any
) -> None:
    with open_page(url=postgresql.url) as page:
        page.store._patience = 0.5
        guest = Browser(page).enter()
        rows = guest.state()["rows"]
        body = {"rows": [[rows[0]["source"], rows[0]["row"]]], "label": 1, "request": "once"}
        postgresql.stop()
        try:
            status, found = guest.post("/api/answer", body)
            assert status == 409
            assert "cannot be used" in found["error"]  # the page sends it again
            assert "not acknowledged" in found["error"]
        finally:
            postgresql.start()
        page.store._patience = 30.0
        assert guest.post("/api/answer", body)[0] == 200
        assert guest.post("/api/answer", body)[0] == 200
        assert [event.row for event in page.store.events()] == [rows[0]["row"]]


def test_a_full_disk_is_said_and_answers_go_on_when_there_is_room(
    open_page: Callable[..., Any],
) -> None:
    with open_page() as page:
        guest, store = Browser(page).enter(), page.store
        row = guest.state()["rows"][0]
        body = {"rows": [[row["source"], row["row"]]], "label": 1, "note": "x" * 9000}
        disk = FullDisk(store)
        status, found = guest.post("/api/answer", {**body, "request": "again"})
        assert status == 409
        assert "full" in found["error"]
        assert "Make room" in found["error"]
        assert guest.state()["progress"]["answered"] == 0
        disk.make_room()
        assert guest.post("/api/answer", {**body, "request": "again"})[0] == 200
        assert len(store.events()) == 1
