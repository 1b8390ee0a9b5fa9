"""The page in a real browser: answers by keyboard, refits, two reviewers, a phone."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aloof.feedback.versions import present_version

playwright = pytest.importorskip("playwright.sync_api")
playwright.expect.set_options(timeout=30_000)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on the PATH"),
    # Of Playwright's own event loop, when it ends.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
# To look at: ALOOF_SCREENSHOTS=folder keeps them.
SCREENSHOTS = os.environ.get("ALOOF_SCREENSHOTS")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A tab of a browser of one's own, which fails where the page does."""

    def __init__(self, browser: Any, running: Any, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(30_000)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "console",
            lambda line: self.errors.append(line.text) if line.type == "error" else None,
        )
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(running.address)
        self.page.wait_for_selector("li.row.current")

    def first(self) -> str:
        return str(self.page.locator("li.row.current .name").inner_text())

    def first_is(self, name: str) -> None:
        playwright.expect(self.page.locator("li.row.current .name")).to_have_text(name)

    def first_is_not(self, name: str) -> None:
        playwright.expect(self.page.locator("li.row.current .name")).not_to_have_text(name)

    def said(self, pattern: str) -> None:
        found = self.page.locator("#said")
        playwright.expect(found).to_contain_text(re.compile(pattern))

    def progress(self, pattern: str) -> None:
        found = self.page.locator("#progress")
        playwright.expect(found).to_contain_text(re.compile(pattern))

    def keep(self, name: str) -> None:
        if SCREENSHOTS:
            self.page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png")

    def close(self) -> None:
        self.context.close()
        assert self.errors == []


@pytest.fixture
def opened(open_page: Callable[..., Any], chromium: Any) -> Iterator[Any]:
    with open_page(by="eve") as running:
        tabs: list[Tab] = []

        def tab(**options: Any) -> Tab:
            tabs.append(Tab(chromium, running, **options))
            return tabs[-1]

        yield running, tab
        for each in tabs:
            each.close()


def test_the_whole_loop_by_keyboard(opened: Any) -> None:
    running, tab = opened
    one = tab()
    page = one.page
    assert page.url == running.url + "/"  # the token is gone from the address
    first = one.first()
    page.keyboard.press("a")
    one.said("kept as anomaly")
    one.progress("^1 of 50 answered")
    one.first_is_not(first)
    page.keyboard.press("z")
    one.said("Taken back")
    one.progress("^0 of 50 answered")
    one.first_is(first)
    for place in range(12):
        page.keyboard.press("n" if place % 4 == 3 else "a")
        one.progress(f"^{place + 1} of 50 answered")
    page.keyboard.press("o")
    page.keyboard.type("not mine")
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    one.progress("^13 of 50 answered, 9 found, 3 normal")
    assert running.store.events()[-1].note == "not mine"
    second = page.locator("li.row .name").nth(1).inner_text()
    page.keyboard.press("j")
    one.first_is(second)
    page.keyboard.press("k")
    one.keep("answering")
    page.get_by_role("button", name="Refit").click()
    page.wait_for_selector("#accept", timeout=120_000)
    one.keep("refitted")
    assert "Rows that rise" in page.locator("#refitting").inner_text()
    page.locator("#accept").click()
    one.said("Accepted")
    playwright.expect(page.locator("#version")).to_have_text("2")
    assert present_version(running.folder / "model") == 2
    marks = page.locator(".mark", has_text=re.compile("up|down|new"))
    playwright.expect(marks.first).to_be_visible()
    one.keep("moves")
    page.reload()
    page.wait_for_selector("li.row.current")
    one.progress("^13 of 50 answered")
    page.get_by_role("button", name="Roll back").click()
    one.said("Back at version 1")
    assert present_version(running.folder / "model") == 1
    assert {url.split("/")[2] for url in one.requests} == {running.url.split("/")[2]}


def test_two_reviewers_see_each_other(opened: Any) -> None:
    running, tab = opened
    eve, bob = tab(), tab()
    bob.page.locator("#by").fill("bob")
    bob.page.locator("#by").press("Tab")
    name = eve.first()
    eve.page.locator("body").press("a")
    eve.said("kept as anomaly")
    row = bob.page.locator("li.row", has=bob.page.locator(".name", has_text=name)).first
    playwright.expect(row).to_contain_text("eve: anomaly")
    row.get_by_role("button", name="Normal").click()
    bob.said("kept as normal")
    eve.progress("1 in conflict")
    assert {event.by for event in running.store.events()} == {"eve", "bob"}


def test_script_in_cells_names_and_notes_is_text(opened: Any) -> None:
    _, tab = opened
    one = tab()
    page = one.page
    page.locator("#show").select_option("all")
    page.locator("#search").fill("script")
    playwright.expect(page.locator("li.row").first).to_contain_text("<script>")
    page.locator("li.row.current input.note").fill(
        "<img src=x onerror=\"document.title='no'\">"
    )
    page.locator("li.row.current button.a").click()
    one.said("kept")
    playwright.expect(page.locator("li.row").first).to_contain_text("onerror")
    assert page.title() == "Review: new.csv"
    assert page.locator("li.row img, li.row script").count() == 0


def test_alike_rows_are_answered_at_once_and_rules_hide_rows(opened: Any) -> None:
    running, tab = opened
    one = tab()
    page = one.page
    listed = page.locator("#listed")
    before = listed.inner_text()
    button = page.locator("button.group").first
    button.click()
    page.locator(".asked button", has_text="normal").click()
    one.said(r"\d+ rows kept as normal")
    assert len({event.number for event in running.store.events()}) > 1
    page.locator("body").press("z")
    one.progress("^0 of 50 answered")
    playwright.expect(listed).to_have_text(before)
    page.locator("li.row.current button[aria-label^='Hide rows where host']").click()
    page.locator(".suppress").get_by_role("button", name="Hide").click()
    playwright.expect(page.locator("#rules")).to_contain_text("hides")
    playwright.expect(listed).not_to_have_text(before)
    page.get_by_role("button", name="Lift").click()
    playwright.expect(listed).to_have_text(before)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_it_in_light_and_dark(opened: Any, scheme: str) -> None:
    _, tab = opened
    one = tab(viewport={"width": 375, "height": 740}, color_scheme=scheme)
    wide = one.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 375
    ground = one.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", ground)[:3])) / 3
    assert (brightness > 200) == (scheme == "light")
    one.keep(f"phone-{scheme}")
    one.page.locator("li.row.current button.n").click()
    one.said("kept as normal")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    _, tab = opened
    # Axe is put into the page, which its policy forbids to others.
    one = tab(color_scheme=scheme, bypass_csp=True)
    found = axe.Axe().run(one.page).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert not serious, [(e["id"], [n["html"][:200] for n in e["nodes"][:3]]) for e in serious]


def test_a_server_that_is_away_is_waited_for(opened: Any) -> None:
    running, tab = opened
    one = tab()
    one.page.route("**/api/answer", lambda route: route.abort())
    one.page.keyboard.press("a")
    playwright.expect(one.page.locator("#trouble")).to_contain_text("trying again")
    assert running.store.events() == []
    one.page.unroute("**/api/answer")
    one.said("kept as anomaly")
    assert len(running.store.events()) == 1
    one.errors.clear()  # the browser complains about what was kept from it


def test_a_database_that_is_restarted_under_the_page_loses_nothing(
    open_page: Callable[..., Any], chromium: Any, postgresql: Any
) -> None:
    with open_page(by="eve", url=postgresql.url) as running:
        one = Tab(chromium, running)
        try:
            first = one.first()
            one.page.keyboard.press("a")
            one.progress("^1 of 50 answered")
            one.first_is_not(first)
            second = one.first()
            postgresql.stop()
            one.page.keyboard.press("n")
            trouble = one.page.locator("#trouble")
            playwright.expect(trouble).to_contain_text("still trying to keep it")
            one.keep("database away")
            postgresql.start()
            one.said(f"{re.escape(second)} kept as normal")
            one.progress("^2 of 50 answered, 1 found, 1 normal")
            playwright.expect(trouble).to_be_hidden()
            kept = [(event.row, event.label) for event in running.store.events()]
            assert len(kept) == 2
            assert kept[1] == (second, 0)
        finally:
            one.close()
