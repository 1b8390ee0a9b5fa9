"""A figure that is not what the records say is found, named, and put right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from aloof.bench.claims import Evidence, Query, check, corrected
from aloof.exceptions import ExperimentError

RNG = np.random.default_rng(0)
AUROC = {
    (method, gamma_l): RNG.uniform(0.9, 1, 10)
    for method in ("dp", "deep-sad")
    for gamma_l in (0.01, 0.05)
}


def mean(method: str, gamma_l: float) -> float:
    return 100 * float(AUROC[method, gamma_l].mean())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Results of an image study, of a planning study, and a file of a benchmark."""
    images: list[dict[str, Any]] = [
        {
            "dataset": "mnist",
            "method": method,
            "normal": normal,
            "anomaly": (normal + 1) % 10,
            "gamma_l": gamma_l,
            "gamma_p": 0.0,
            "seed": 0,
            "variant": "",
            "auroc": float(value),
            "member_auroc": [float(value) - 0.01, float(value) - 0.03],
        }
        for (method, gamma_l), values in AUROC.items()
        for normal, value in enumerate(values)
    ]
    images.insert(0, {**images[0], "auroc": 0.0})  # an older record of the same case
    images.append({**images[5], "status": "error", "auroc": 0.0})
    images.append({**images[3], "setting": "paper", "auroc": 0.5})
    planning = [
        {
            "sampler": "DP-VAE, means",
            "world": world,
            "collision": world / 10,
            "plans": [{"n": 8, "found": False}, {"n": 16, "found": world > 0}],
        }
        for world in range(4)
    ]
    speeds = {
        "seconds": 200.8,
        "runs": [{"rows": 1_000_000, "rate": 54_121.2}, {"rows": 4_000_000, "rate": 44_528.6}],
        "ratio": {"slowest": 0.585},
    }
    for name, records in (("images-mnist", images), ("planning", planning)):
        (tmp_path / name).mkdir()
        text = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / name / "records.jsonl").write_text(text)
    (tmp_path / "speeds.json").write_text(json.dumps(speeds))
    return tmp_path


def found(folder: Path, text: str) -> list[str]:
    path = folder / "page.md"
    path.write_text(text)
    return [str(finding) for finding in check(path, Evidence(folder), named=Path("page.md"))]


SENTENCE = """# A page

<!-- figures: images-mnist setting=ours method=dp gamma_l=.05 records=10; method=deep-sad paper
     ; method=dp auroc% less method=deep-sad; method=dp against method=deep-sad; - -->
DP-VAE has {0:.1f}, Deep SAD ({1}) in the paper; the difference is {2:.2f} (p = {3:.3f}), with a
rate of 0.001 and `beta=.005` on torch 2.13.
"""


def sentence() -> str:
    ours, theirs = AUROC["dp", 0.05], AUROC["deep-sad", 0.05]
    p_value = ttest_rel(ours, theirs).pvalue
    return SENTENCE.format(
        100 * ours.mean(), "96.7", 100 * (ours.mean() - theirs.mean()), p_value
    )


def test_what_the_records_say_is_right_and_nothing_else_is(folder: Path) -> None:
    text = sentence()
    assert found(folder, text) == []
    for right, wrong in (
        (f"{mean('dp', 0.05):.1f}", f"{mean('dp', 0.05) + 0.1:.1f}"),
        ("96.7", "96.8"),
    ):
        (line,) = found(folder, text.replace(right, wrong))
        assert line.startswith(f"page.md:5 says {wrong} for ")
        assert line.endswith(f"{right}")
        assert "method=d" in line and "in images-mnist" in line  # noqa: PT018
    for gone in ("; - -->", " less method=deep-sad; method=dp against"):
        assert found(folder, text.replace(gone, " -->" if "-->" in gone else " against")) != []


def test_missing_records_are_said(folder: Path) -> None:
    records = folder / "images-mnist" / "records.jsonl"
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(line for line in lines if '"normal": 7' not in line))
    first, *_ = found(folder, sentence())
    assert "there are 9 records of" in first
    assert "not 10" in first
    (folder / "planning" / "records.jsonl").unlink()
    marker = "<!-- figures: planning sampler=dp-vae,-means collision% -->\nSo 0.5 it is."
    (line,) = found(folder, marker)
    assert "planning/records.jsonl cannot be read" in line
    (line,) = found(folder, "<!-- figures: images-mnist method=svm -->\nSo 0.5 it is.")
    assert line == "page.md:2 says 0.5, but there is no record of method=svm in images-mnist"


def test_systems_and_settings_are_never_mixed(folder: Path) -> None:
    evidence = Evidence(folder)
    for words, what in (
        ("images-mnist gamma_l=.05 setting=ours", "method deep-sad and dp"),
        ("images-mnist method=dp setting=ours", "gamma_l 0.01 and 0.05"),
        ("images-mnist method=dp gamma_l=.01", "setting ours and paper"),
        ("speeds.json rate", "several records"),
    ):
        query = Query.read(words.split())
        with pytest.raises(ExperimentError, match=what):
            evidence.figure(query, query.measures[0])
    several = "images-mnist dataset=cifar10 method=deep-sad gamma_l=.01 members=5 paper"
    several_query = Query.read(several.split())
    assert evidence.figure(several_query, several_query.measures[0]) == 71.7
    paper = Query.read("images-mnist method=DP-VAE gamma_l=.01 setting=paper".split())
    assert evidence.figure(paper, paper.measures[0]) == 50


TABLE = """
<!-- figures: images-{{dataset}} setting=ours row=dataset,method column=gamma_l auroc% paper -->
| | .01 | .05 |
|---|---|---|
| MNIST, DP-VAE | {0:.1f} (97.0) | **{1:.1f}** (97.5) |
| MNIST, Deep SAD | | {2:.1f} |
"""


def test_cells_are_found_by_row_and_column(folder: Path) -> None:
    cells = mean("dp", 0.01), mean("dp", 0.05), mean("deep-sad", 0.05)
    text = TABLE.format(*cells)
    assert found(folder, text) == []
    for index, line in enumerate((5, 5, 6)):
        wrong = [value + (position == index) for position, value in enumerate(cells)]
        (message,) = found(folder, TABLE.format(*wrong))
        assert message.startswith(f"page.md:{line} says {wrong[index]:.1f} for ")
    assert "the paper says 97.5" in found(folder, text.replace("97.5", "97.4"))[0]
    assert "more figures than its marker" in found(folder, text.replace("(97", "8.1 (97"))[0]
    assert "does not name" in found(folder, text.replace("MNIST, Deep SAD", "Deep SAD"))[0]


def test_columns_may_be_described_one_by_one(folder: Path) -> None:
    text = """
<!-- figures: images-mnist setting=ours gamma_l=.01 row=method
     | - | auroc% std | member_auroc% -->
| | note | AUROC | one |
|---|---|---|---|
| DP-VAE | 3 of 5 | {0:.1f} ± {1:.1f} | {2:.1f} |
"""
    cells = mean("dp", 0.01), 100 * AUROC["dp", 0.01].std(ddof=1), mean("dp", 0.01) - 2
    assert found(folder, text.format(*cells)) == []
    assert len(found(folder, text.format(*(value + 1 for value in cells)))) == 3
    short = text.replace("| member_auroc% ", "")
    assert "more columns" in found(folder, short.format(*cells))[0]


def test_rows_name_settings_the_paper_and_parts_of_names(folder: Path) -> None:
    text = """
<!-- figures: images-mnist gamma_l=.01 dataset=mnist row=method | auroc% std -->
| | AUROC |
|---|---|
| DP-VAE (ours) | {0:.1f} |
| DP-VAE (paper) | 50.0 |
| published, DP-VAE | 97.0 ± 2.3 |

<!-- figures: planning row=method | sampler={{method}},_means collision% -->
| | means |
|---|---|
| DP-VAE | 15.0 |

<!-- figures: images-mnist setting=ours method=dp gamma_l=* auroc% n -->
Of both ratios {1:.2f}, and 20.0 of them.

<!-- figures: images-mnist setting=ours method=dp gamma_l=0.01+0.07 auroc% n;
     auroc% gamma_l=.05+.01 -->
Of those named {0:.2f}, and 10.0 of them; then {1:.2f}.
"""
    both = (mean("dp", 0.01) + mean("dp", 0.05)) / 2
    right = text.format(mean("dp", 0.01), both)
    assert found(folder, right) == []
    wrong = (("50.0", "50.1"), ("2.3", "2.4"), ("15.0", "15.1"), ("20.0", "10.0"))
    for old, new in (*wrong, ("10.0", "20.0")):
        assert len(found(folder, right.replace(old, new))) == 1, old
    assert len(found(folder, text.format(mean("dp", 0.01) + 1, both + 1))) == 4


def test_plans_files_and_rounded_numbers(folder: Path) -> None:
    text = """
<!-- figures: planning row=sampler | collision% low high | found@16% low high -->
| | collision | found |
|---|---|---|
| DP-VAE, means | 15 [-5.5, 35.5] | 75 [30, 95] |

<!-- figures: speeds.json row=rows | rate | -->
| rows | a second | |
|---|---|---|
| 1,000,000 | 54,000 | |
| 4,000,000 | 44,500 | |

<!-- figures: speeds.json seconds/60; ratio.slowest; rate rows=1000000 per rows=4000000 -->
It took 3.3 minutes, at 0.585 of the speed and 1.22 times that.

* <!-- figures: speeds.json seconds -->The first item has 200.8 s.
* <!-- no figures: a setting -->The second one a rate of 0.5.

<!-- figures: speeds.json seconds -->
```
seconds 200.8
```
"""
    assert found(folder, text) == []
    for right, wrong in (
        ("35.5", "35.7"),
        ("[30", "[31"),
        ("54,000", "55,000"),
        ("3.3 minutes", "3.4 minutes"),
        ("0.585", "0.586"),
        ("has 200.8", "has 200.7"),
        ("seconds 200.8", "seconds 200.9"),
    ):
        assert len(found(folder, text.replace(right, wrong))) == 1, wrong


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("It has 93.2 there.", ["93.2"]),
        ("A share of .05 and -0.4, then 1.5x.", [".05", "-0.4", "1.5"]),
        ("| a | 3.6x |\n|---|---|\n| b | 7.25 |", ["3.6", "7.25"]),
        ("Ten runs, 3 of 1,000, in 2026; `rate=0.5`, torch 2.13, version 1.2.3.", []),
        ("```\n0.5\n```\n<!-- 0.5 -->\n[so](a-0.5.md)", []),
        ("<!-- no figures: settings -->\nA rate of 0.5.\n\nA rate of 0.6.", ["0.6"]),
    ],
)
def test_a_figure_without_a_marker_is_found(folder: Path, text: str, loose: list[str]) -> None:
    messages = found(folder, text)
    assert [message.split()[2] for message in messages] == loose
    assert all("without a marker" in message for message in messages)


def test_of_a_page_that_a_command_makes_only_what_is_marked_is_checked(folder: Path) -> None:
    right = f"{mean('dp', 0.01):.1f}"
    for said, wrong in ((right, 0), ("12.3", 1)):
        path = folder / "reproduction.md"
        path.write_text(
            "The tables have 45.6 and no marker.\n\n"
            "<!-- figures: images-mnist method=dp gamma_l=0.01 setting=ours -->\n"
            f"DP-VAE has {said}.\n"
        )
        evidence = Evidence(folder)
        assert len(list(check(path, evidence))) == wrong
        assert corrected(path, evidence) == path.read_text()  # a command writes it


def test_a_marker_does_not_tear_a_paragraph_apart(folder: Path) -> None:
    text = "It took\n<!-- figures: speeds.json seconds -->\n200.8 seconds."
    (line,) = found(folder, text)
    assert "splits a paragraph" in line
    assert found(folder, "It took <!-- figures: speeds.json seconds -->\n200.8 seconds.") == []


def test_what_the_records_say_is_put_in(folder: Path) -> None:
    cells = mean("dp", 0.01), mean("dp", 0.05), mean("deep-sad", 0.05)
    wrong = TABLE.format(*(value - 3 for value in cells)) + "\n" + sentence()
    path = folder / "page.md"
    path.write_text(wrong)
    assert corrected(path, Evidence(folder)) == TABLE.format(*cells) + "\n" + sentence()
    path.write_text(corrected(path, Evidence(folder)))
    assert not list(check(path, Evidence(folder)))


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("method=dp", "begins with a folder or a file"),
        ("images-mnist method=dp auroc%%", "'auroc%%' is not a word that markers know"),
        ("images-{set} method=dp", "names a field that the marker does not"),
        ("images-mnist method=dp row=method", "a marker for a table, and none follows"),
        ("nowhere.json auroc", "nowhere.json cannot be read"),
    ],
)
def test_a_marker_that_makes_no_sense_is_one_line(
    folder: Path, marker: str, message: str
) -> None:
    lines = found(folder, f"<!-- figures: {marker} -->\nIt has 93.2.")
    assert len(lines) == 1
    assert message in lines[0]


def test_places_of_lists_and_askers(tmp_path: Path) -> None:
    records = [
        {"status": "ok", "dataset": "cardio", "asker": asker, "seed": seed, "found": [0, n]}
        for asker, numbers in (("likely", (4, 5)), ("isolation forest", (1, 2)))
        for seed, n in enumerate(numbers)
    ]
    (tmp_path / "review").mkdir()
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "review/records.jsonl").write_text(lines)
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- figures: review asker=likely found.-1; found.0; found.-1 per "
        "asker=isolation-forest -->\nIt finds 4.5, begins with 0.0, finds 3.0 times as many.\n"
    )
    assert list(check(page, Evidence(tmp_path))) == []
    page.write_text("<!-- figures: review found.-1 -->\nIt finds 4.5.\n")
    assert "asker isolation forest and likely" in str(next(check(page, Evidence(tmp_path))))
