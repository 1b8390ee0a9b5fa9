"""The report: one page that holds everything, says the truth, and survives odd tables."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from aloof.exceptions import MissingExtraError, TableError
from aloof.models.table import TableModel

Small = Callable[..., TableModel]
VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """What there is in a page; fails on tags that are not closed in order."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        assert not self.stack, f"not closed: {self.stack}"

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] not in ("style", "script"):
            self.texts.append((self.stack[-1], data))

    @property
    def words(self) -> str:
        return re.sub(r"\s+", " ", "".join(text for _, text in self.texts))

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    def headings(self) -> list[str]:
        return [text for tag, text in self.texts if tag == "h2"]


@pytest.fixture(scope="module")
def page(saved: str, new: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("page")
    TableModel.load(saved, device="cpu").report(new, folder / "report.html", top=7)
    assert [path.name for path in folder.iterdir()] == ["report.html"]
    return Page(folder / "report.html")


def test_nothing_is_loaded_from_elsewhere(page: Page) -> None:
    assert page.count("script") == page.count("link") == page.count("img") == 0
    for tag, attributes in page.tags:
        for name in ("src", "href", "xlink:href", "data", "action"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:image/png;")), (tag, target)
    addresses = set(re.findall(r"https?://[^\s\"'<]+", page.source))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert all(name.startswith("#") for name in re.findall(r"url\((.*?)\)", page.source))
    assert "@import" not in page.source


def test_ids_are_there_once_and_links_lead_to_them(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {a["href"] for tag, a in page.tags if tag == "a"}
    assert {f"#{name}" for name in ids} >= links
    used = {a["xlink:href"] for tag, a in page.tags if tag == "use"}
    assert used <= {f"#{name}" for name in ids}


def test_people_who_cannot_see_the_pictures_are_told(page: Page) -> None:
    pictures = [a for _, a in page.tags if a.get("role") == "img"]
    assert len(pictures) == page.count("svg") == 6
    assert all(len(a["aria-label"] or "") > 20 for a in pictures)
    assert page.count("table") == page.count("caption")
    assert page.count("figure") == page.count("figcaption") == 6
    assert page.count("h1") == 1
    assert ("html", {"lang": "en"}) in page.tags


def test_figures_in_words_are_those_of_the_model(
    page: Page, model: TableModel, new: pa.Table
) -> None:
    found = model.evaluate(new)
    flagged = int(model.is_anomaly(new).sum())
    assert f"{found.true_positives} of {found.n_anomalies}" in page.words
    assert f"Flagged{flagged:,}" in page.words.replace(" ", "")
    assert 0.5 < found.auroc < 0.999
    assert f"ROC curve is {100 * found.auroc:.1f} %" in page.words
    assert "1 % of normal rows" in page.words
    training = model.training
    assert f"{training['n_anomalies']} anomalies" in page.words
    assert f"{training['n_calibration']} rows held out of the training" in page.words


def test_top_rows_with_reasons_in_their_order(
    page: Page, model: TableModel, new: pa.Table
) -> None:
    order = np.argsort(-model.anomaly_score(new), kind="stable")[:7]
    rows = new.take(order)
    named = re.findall(r'<span class="id">(.*?)</span>', page.source)
    assert named == rows["order"].to_pylist()
    for reasons in model.reasons(rows, 3):
        for reason in reasons:
            assert reason.replace("`", "") in page.words
    shares = model.explain(rows).contributions / model.anomaly_score(rows)[:, None]
    first = re.findall(r'strong" style="width:([\d.]+)%', page.source)[:7]
    np.testing.assert_allclose(np.array(first, float), 100 * shares.max(1), atol=0.06)


def test_the_same_rows_are_the_same_page_in_any_form(
    model: TableModel, new: pa.Table, page: Page, tmp_path: Path
) -> None:
    model.report(new.to_pandas(), tmp_path / "pandas.html", top=7)
    assert (tmp_path / "pandas.html").read_text() == page.source
    pa_csv.write_csv(new, tmp_path / "new.csv")
    model.report(tmp_path / "new.csv", tmp_path / "file.html", top=7)
    text = (tmp_path / "file.html").read_text()
    assert Page(tmp_path / "file.html").headings() == page.headings()
    assert f"{tmp_path / 'new.csv'}, scored by a DP-VAE with 2 members" in text


def test_the_style_of_other_figures_is_left_alone(
    model: TableModel, new: pa.Table, tmp_path: Path
) -> None:
    before = dict(mpl.rcParams)
    model.report(new, tmp_path / "report.html")
    assert dict(mpl.rcParams) == before


def test_hostile_names_and_values_are_only_text(small: Small, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    attack = "<script>alert(1)</script>"
    quote = "\"' onmouseover='x"
    values = np.where(rng.random(600) < 0.5, "plain", "<b>bold</b>").astype(object)
    values[7] = "</td></table><img src=x onerror=alert(2)>"
    table = pa.table(
        {
            "<i>id</i>": [f"<u>{i}</u>" for i in range(600)],
            attack: rng.normal(size=600),
            quote: values.tolist(),
            "`{{ 7 * 7 }}`": rng.normal(size=600),
            "<label>": rng.integers(0, 2, 600) * (np.arange(600) < 20),
        }
    )
    model = small(table, label="<label>", id="<i>id</i>", members=1)
    odd = table.append_column("<style>*{display:none}", pa.array([1] * 600))
    model.report(odd, tmp_path / "r.html", title="</title><script>alert(3)</script>")
    page = Page(tmp_path / "r.html")
    assert page.count("script") == page.count("img") == page.count("u") == page.count("b") == 0
    assert not any("onmouseover" in a or "onerror" in a for _, a in page.tags)
    assert page.count("style") == 7  # the page's own, and one in each picture
    assert attack in page.words
    assert "{{ 7 * 7 }}" in page.words
    assert "<style>*{display:none}" in page.words


def test_without_labels_the_page_says_so(
    model: TableModel, new: pa.Table, tmp_path: Path
) -> None:
    model.report(new.drop_columns(["bad", "order"]), tmp_path / "r.html", top=3)
    page = Page(tmp_path / "r.html")
    assert "Against the labels" not in page.headings()
    assert page.count("svg") == 4
    assert "no labels to compare with" in page.words
    assert "no column 'order' to identify rows" in page.words
    best = int(np.argmax(model.anomaly_score(new)))
    assert f'<span class="id">{best + 1:,}</span>' in page.source


def test_unlabelled_rows_stand_in_where_no_row_is_labelled_normal(
    model: TableModel, new: pa.Table, tmp_path: Path
) -> None:
    labels = model.labels(new)
    only = pa.array([1 if label == 1 else None for label in labels])
    table = new.set_column(new.schema.get_field_index("bad"), "bad", only)
    model.report(table, tmp_path / "r.html")
    assert "No row is labelled as normal" in Page(tmp_path / "r.html").words


@pytest.mark.parametrize("n", [1, 2])
def test_very_few_rows(model: TableModel, new: pa.Table, tmp_path: Path, n: int) -> None:
    model.report(new.slice(0, n), tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert "Latent map" not in page.headings()
    assert len(re.findall(r'<span class="id">', page.source)) == n
    assert f"Shown {'is the' if n == 1 else 'are all'} {n} row" in page.words


def test_equal_scores(model: TableModel, new: pa.Table, tmp_path: Path) -> None:
    same = pa.concat_tables([new.slice(3, 1)] * 40)
    model.report(same, tmp_path / "r.html")
    assert Page(tmp_path / "r.html").count("svg") == 4


def test_only_anomalies(model: TableModel, new: pa.Table, tmp_path: Path) -> None:
    bad = new.filter(pa.array(model.labels(new) == 1))
    model.report(bad, tmp_path / "r.html")
    assert "Every row is labelled as an anomaly" in Page(tmp_path / "r.html").words


@pytest.mark.parametrize(
    ("value", "words"), [(1e30, "None of them is flagged"), (-1.0, "of 1,200 flagged rows")]
)
def test_thresholds_out_of_range(
    model: TableModel, new: pa.Table, tmp_path: Path, value: float, words: str
) -> None:
    model.set_threshold(value=value)
    model.report(new, tmp_path / "r.html")
    assert words in Page(tmp_path / "r.html").words


def test_a_false_discovery_rate_is_decided_over_the_table(
    model: TableModel, new: pa.Table, tmp_path: Path
) -> None:
    model.set_threshold(fdr=0.2)
    model.report(new, tmp_path / "r.html")
    words = Page(tmp_path / "r.html").words
    assert "a false discovery rate of 20 %, decided over these rows together" in words
    assert f"Flagged{int(model.is_anomaly(new).sum())}" in words.replace(" ", "")


def test_without_calibration_there_are_no_p_values(
    small: Small, train: pa.Table, tmp_path: Path
) -> None:
    model = small(
        train, method="vae", id="order", drop=["bad"], calibration=0, members=1, latent_dim=1
    )
    model.report(train, tmp_path / "r.html")
    page = Page(tmp_path / "r.html")
    assert "so there are no p-values" in page.words
    assert "the model is not calibrated" in page.words
    assert page.count("svg") == 2


def test_changed_data_is_told(model: TableModel, new: pa.Table, tmp_path: Path) -> None:
    model.report(new, tmp_path / "same.html")
    assert "may have changed" not in Page(tmp_path / "same.html").words
    sizes = pa.array(new["size"].to_numpy() + 2.0)
    moved = new.set_column(new.schema.get_field_index("size"), "size", sizes)
    model.report(moved, tmp_path / "moved.html")
    assert "The data may have changed since training" in Page(tmp_path / "moved.html").words


def test_training_rows_are_told(small: Small, train: pa.Table, tmp_path: Path) -> None:
    pa_csv.write_csv(train, tmp_path / "train.csv")
    model = small(tmp_path / "train.csv", label="bad", drop=["order"], members=1, max_epochs=2)
    model.report(tmp_path / "train.csv", tmp_path / "r.html", top=3)
    words = Page(tmp_path / "r.html").words
    assert "these rows are the ones the model was trained on" in words
    # Its networks cannot be chosen on the command line, so this is how it is made again.
    assert (
        f"aloof.fit('{tmp_path / 'train.csv'}', label='bad', method='dp', "
        "drop=('order',), members=1, hidden=(16,), latent_dim=4, max_epochs=2)" in words
    )
    assert f"model.report('{tmp_path / 'train.csv'}', 'report.html', top=3)" in words


def test_an_output_that_exists_is_left_alone(
    model: TableModel, new: pa.Table, tmp_path: Path
) -> None:
    path = tmp_path / "r.html"
    path.write_text("mine")
    with pytest.raises(TableError, match="exists"):
        model.report(new, path)
    assert path.read_text() == "mine"
    model.report(new, path, force=True)
    assert path.read_text().startswith("<!doctype html>")


def test_bad_input_leaves_nothing(model: TableModel, new: pa.Table, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    with pytest.raises(TableError, match="no rows"):
        model.report(new.slice(0, 0), out)
    with pytest.raises(TableError, match="no column 'price'"):
        model.report(new.drop_columns("price"), out)
    with pytest.raises(TableError, match="there is no folder"):
        model.report(new, tmp_path / "no" / "r.html")
    with pytest.raises(TableError, match="is a folder"):
        model.report(new, tmp_path, force=True)
    with pytest.raises(ValueError, match="top must be at least 1"):
        model.report(new, out, top=0)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(
    model: TableModel, new: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(TableError, match=r"No space left on device\. Free some space"):
        model.report(new, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_a_missing_extra_is_named(
    model: TableModel,
    new: pa.Table,
    tmp_path: Path,
    missing: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)  # importing it now fails
    with pytest.raises(
        MissingExtraError, match=rf"needs {missing}.*pip install 'aloof\[report\]"
    ):
        model.report(new, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []
