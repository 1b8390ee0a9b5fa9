"""What is answered: the same scores as ``aloof score``, whatever the form, whoever asks."""

from __future__ import annotations

import base64
import gzip
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serve_rows import in_types

import aloof as package
from aloof.exceptions import CalibrationWarning
from aloof.models.table import TableModel
from aloof.serve.arrow import ARROW_FILE, ARROW_STREAM, write_arrow
from aloof.serve.limits import Limits
from aloof.serve.served import Asked, Content, Scored
from aloof.serve.tables import ServedTable

SCORES = ("anomaly_score", "p_value", "is_anomaly")


def told(answer: Any) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in ("id", *SCORES)) for row in answer["results"]]


@pytest.fixture(scope="session")
def by_command(made: Path) -> pa.Table:
    """What ``aloof score`` writes."""
    code = "from aloof.cli import command; command()"
    out = made / "scores.arrow"
    command = ["score", str(made / "model"), str(made / "new.csv"), "--out", str(out)]
    subprocess.run([sys.executable, "-c", code, *command], check=True, capture_output=True)
    return pa.ipc.open_file(out).read_all()


def test_scores_are_those_of_the_command_to_the_bit(
    made: Path, new: pa.Table, by_command: pa.Table, serving: Callable[..., Any]
) -> None:
    wanted = [tuple(row[name] for name in ("id", *SCORES)) for row in by_command.to_pylist()]
    assert any(row[-1] for row in wanted)
    csv = (made / "new.csv").read_bytes()
    records = new.to_pylist()
    columns = {name: new[name].to_pylist() for name in new.column_names}
    file = io.BytesIO()
    with pa.ipc.new_file(file, new.schema) as writer:
        writer.write_table(new, 40)
    with serving(made / "model") as client:
        for kind, body in (
            ("text/csv", csv),
            ("application/json", json.dumps(records)),
            ("application/json", json.dumps({"rows": records})),
            ("application/json", json.dumps({"columns": columns})),
            ("application/json", json.dumps({"rows": in_types(new)})),
            (ARROW_STREAM, write_arrow(new)),
            (ARROW_FILE, file.getvalue()),
            (ARROW_STREAM, write_arrow(pa.Table.from_pylist(in_types(new)))),
        ):
            status, found = client.ask("POST", "/score", body, kind)
            assert status == 200, found
            assert told(found) == wanted
        status, found = client.ask(
            "POST", "/score", gzip.compress(csv), "text/csv", Content_Encoding="gzip"
        )
        assert told(found) == wanted
        assert "warnings" not in found
        status, found = client.ask("POST", "/score?reasons=3", csv, "text/csv")
        reasons = [
            [row[f"reason_{i}"] for i in (1, 2, 3) if row[f"reason_{i}"] is not None]
            for row in by_command.to_pylist()
        ]
        assert [row["reasons"] for row in found["results"]] == reasons
        status, found = client.ask(
            "POST", "/score?reasons=3", csv, "text/csv", Accept=ARROW_STREAM
        )
        table = pa.ipc.open_stream(found).read_all().replace_schema_metadata(None)
        assert table.equals(by_command.replace_schema_metadata(None))


def test_rows_have_their_scores_in_any_company(
    made: Path, new: pa.Table, model: TableModel, serving: Callable[..., Any]
) -> None:
    """Many clients at once, one row each: what is scored together stays apart."""
    records = in_types(new)
    scores = model.anomaly_score(new)
    wrong: list[Any] = []
    with serving(made / "model", threads=2) as client:
        kind = type(client)

        def ask(first: int) -> None:
            own = kind(client.port, client.server)
            for place in range(first, len(records), 8):
                status, found = own.score({"rows": [records[place]]})
                if status != 200 or found["results"][0]["anomaly_score"] != scores[place]:
                    wrong.append((place, status, found))
            own.close()

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert client.metric("aloof_rows_total") == len(records)
        assert client.metric("aloof_batch_rows_count") < len(records)


cell = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(width=64),
    st.sampled_from(["Oslo", "Bern", "12.5", "1e3", "3", "", "nan", "true", "2024-03-01", "ü"]),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
row = st.fixed_dictionaries(
    {name: cell for name in ("amount", "weight", "city", "code", "open", "when")}
)


@given(requests=st.lists(st.lists(row, min_size=1, max_size=25), min_size=1, max_size=6))
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_what_is_said_of_a_request_does_not_depend_on_others(
    requests: list[list[dict[str, Any]]], model: TableModel
) -> None:
    served = ServedTable(model, Limits())
    body = [json.dumps({"rows": records}).encode() for records in requests]
    read = [
        served.read(Content(each, "application/json"), Asked(reasons=2 * (i % 2)))
        for i, each in enumerate(body)
    ]
    together = served.score(read)
    for request, found in zip(read, together, strict=True):
        (alone,) = served.score([request])
        assert type(alone) is type(found)
        if not isinstance(alone, Scored):
            assert str(alone) == str(found)
            continue
        assert isinstance(found, Scored)
        assert np.isfinite(alone.scores).all()
        assert alone.scores.tobytes() == found.scores.tobytes()
        assert alone.reasons == found.reasons
        assert alone.warnings == found.warnings


@given(records=st.lists(row, min_size=1, max_size=25))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@pytest.mark.filterwarnings("ignore::aloof.exceptions.AloofWarning")
def test_json_is_read_as_a_frame_of_the_same_values(
    records: list[dict[str, Any]], model: TableModel
) -> None:
    served = ServedTable(model, Limits())
    rows = served.read(Content(json.dumps(records).encode(), "application/json"), Asked())
    (found,) = served.score([rows])
    frame = {name: [record[name] for record in records] for name in records[0]}
    if not isinstance(found, Scored):
        with pytest.raises(type(found)):
            model.anomaly_score(frame)
        return
    assert found.scores.tobytes() == model.anomaly_score(frame).tobytes()


def test_a_client_hears_of_its_own_values_only(
    made: Path, new: pa.Table, model: TableModel
) -> None:
    served = ServedTable(model, Limits())
    good, bad = in_types(new)[:2]
    bad["amount"] = "SECRET-17"
    read = [
        served.read(Content(json.dumps([each]).encode(), "application/json"), Asked())
        for each in (good, bad, {**good, "amount": "12.5"})
    ]
    fine, odd, other = served.score(read)
    assert isinstance(fine, Scored)
    assert isinstance(other, Scored)
    assert not fine.warnings
    assert not other.warnings
    assert isinstance(odd, Scored)
    assert odd.warnings == (
        "Column 'amount': 1 of 1 values cannot be read as numbers ('SECRET-17'); they count "
        "as missing.",
    )


def test_columns_that_are_missing_or_unknown(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    record = in_types(new)[0]
    with serving(made / "model") as client:
        status, found = client.score([{**record, "colour": "red"}])
        assert status == 200
        assert found["warnings"] == [
            "The model was not trained on these columns and ignores them: 'colour'."
        ]
        del record["city"]
        status, found = client.score([in_types(new)[1], record])
        assert status == 422
        assert "same columns" in found["error"]
        assert client.score([in_types(new)[1], in_types(new)[2] | {"colour": 1}])[0] == 200
        status, found = client.score([record])
        assert status == 422
        assert "no column 'city'" in found["error"]
        assert "?missing_columns=fill" in found["error"]
        assert client.score([record], "/score?missing_columns=fill")[0] == 200
        record = in_types(new)[1]
        del record["id"]
        assert "id" not in client.score([record])[1]["results"][0]


def test_options_are_honoured_or_refused(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    records = in_types(new)[:2]
    with serving(made / "model") as client:
        for query, words in (
            ("reason=3", "did you mean 'reasons'?"),
            ("reasons=-1", "from 0 to 100"),
            ("reasons=1&reasons=2", "twice"),
            ("missing_columns=drop", "refuse or fill"),
            ("header=perhaps", "true or false"),
        ):
            status, found = client.score(records, f"/score?{query}")
            assert status == 422
            assert words in found["error"]
        text = b";".join(name.encode() for name in records[0])
        line = ";".join("" if v is None else str(v) for v in records[0].values())
        body = text + b"\n" + line.encode() + b"\n"
        status, found = client.ask("POST", "/score?delimiter=;&header=true", body, "text/csv")
        assert status == 200, found


def test_images(serving: Callable[..., Any], tmp_path: Path) -> None:
    from PIL import Image

    from aloof.models.images import fit_images

    rng = np.random.default_rng(0)
    train = rng.integers(90, 160, (60, 1, 16, 16)).astype(np.uint8)
    with pytest.warns(CalibrationWarning), pytest.warns(UserWarning, match="labelled"):
        model = fit_images(
            train, members=1, max_epochs=1, filters=(4,), hidden=(8,), latent_dim=2
        )
    model.save(tmp_path / "pictures")
    files = []
    for place in range(3):
        content = io.BytesIO()
        picture = rng.integers(0, 255, (20, 24), dtype=np.uint8)
        Image.fromarray(picture).save(content, "PNG")
        (tmp_path / f"{place}.png").write_bytes(content.getvalue())
        files.append(content.getvalue())
    scores = [model.anomaly_score(tmp_path / f"{place}.png")[0] for place in range(3)]
    form = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="%d.png"\r\n'
        b"Content-Type: image/png\r\n\r\n%b\r\n" % (place, file)
        for place, file in enumerate(files)
    )
    with serving(tmp_path / "pictures") as client:
        status, found = client.ask("POST", "/score", files[0], "image/png")
        assert status == 200, found
        assert found["results"][0]["anomaly_score"] == scores[0]
        status, found = client.ask(
            "POST", "/score", form + b"--x--\r\n", "multipart/form-data; boundary=x"
        )
        assert status == 200, found
        assert [each["anomaly_score"] for each in found["results"]] == scores
        assert [each["file"] for each in found["results"]] == ["0.png", "1.png", "2.png"]
        status, found = client.score(
            {"images": [base64.b64encode(file).decode() for file in files]}
        )
        assert [each["anomaly_score"] for each in found["results"]] == scores
        pixels = model.read(tmp_path / "0.png").pixels
        tensor = {
            "name": "images",
            "shape": list(pixels.shape),
            "datatype": "UINT8",
            "data": pixels.reshape(-1).tolist(),
        }
        status, found = client.score({"inputs": [tensor]}, "/v2/models/pictures/infer")
        assert status == 200, found
        assert found["outputs"][0]["data"] == scores[:1]
        status, found = client.ask("POST", "/score", files[0][:80], "image/png")
        assert status == 422
        assert "cut off or damaged" in found["error"]
        assert client.ask("POST", "/score", b"a,b\n1,2\n", "text/csv")[0] == 415
        assert client.score({"images": ["?"]})[0] == 422
        assert client.ask("POST", "/score?reasons=3", files[0], "image/png")[0] == 422
    with serving(tmp_path / "pictures", limits=Limits(pixels=400)) as client:
        assert client.ask("POST", "/score", files[0], "image/png")[0] == 413


def test_arrays(serving: Callable[..., Any], tmp_path: Path) -> None:
    from aloof import VAE

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    detector = VAE(n_members=1, max_epochs=2, hidden=(8,), latent_dim=2, random_state=0).fit(X)
    detector.save(tmp_path / "numbers")
    rows = (3 * rng.normal(size=(20, 3))).tolist()
    scores = detector.anomaly_score(np.array(rows)).tolist()
    with serving(tmp_path / "numbers") as client:
        status, found = client.score({"rows": rows}, "/score?reasons=2")
        assert status == 200, found
        assert [each["anomaly_score"] for each in found["results"]] == scores
        flagged = [each for each in found["results"] if each["is_anomaly"]]
        assert flagged
        assert all(len(each["reasons"]) == 2 for each in flagged)
        table = pa.table({str(i): [row[i] for row in rows] for i in range(3)})
        status, found = client.ask("POST", "/score", write_arrow(table), ARROW_STREAM)
        assert [each["anomaly_score"] for each in found["results"]] == scores
        for bad in ([[1, 2]], [[1, 2, "a"]], [[1, 2, None]], [[1, 2, 1e300]], [1, 2, 3], [[]]):
            assert client.score({"rows": bad})[0] == 422
        tensor = {"name": "rows", "shape": [20, 3], "datatype": "FP64", "data": rows}
        status, found = client.score({"inputs": [tensor]}, "/v2/models/numbers/infer")
        assert found["outputs"][0]["data"] == scores


def test_lines_of_text(serving: Callable[..., Any], tmp_path: Path) -> None:
    pytest.importorskip("sentencex")
    from aloof.text import HASHING

    normal = ("the parcel arrived on time", "quick delivery, friendly reply", "fine as always")
    (tmp_path / "train.txt").write_text("".join(f"{normal[i % 3]} {i}\n" for i in range(600)))
    with pytest.warns(UserWarning, match="no labelled anomalies"):
        model = package.fit(
            tmp_path / "train.txt",
            embedder=HASHING,
            members=1,
            max_epochs=3,
            hidden=(16,),
            latent_dim=4,
        )
    model.save(tmp_path / "mails")
    (tmp_path / "new.txt").write_text("the parcel arrived on time\n\nmy account was hacked\n")
    scores = model.anomaly_score(tmp_path / "new.txt").tolist()
    body = (tmp_path / "new.txt").read_bytes()
    with serving(tmp_path / "mails") as client:
        status, found = client.ask("POST", "/score?reasons=1", body, "text/plain")
        assert status == 200, found
        assert [row["anomaly_score"] for row in found["results"]] == scores
        status, found = client.score({"rows": [{"text": "my account was hacked"}]})
        assert [row["anomaly_score"] for row in found["results"]] == scores[2:]
        assert client.ask("POST", "/score", b"\xff", "text/plain")[0] == 400
        assert client.ask("POST", "/score", b"a", "text/plain; charset=klingon")[0] == 400


def test_objects_inside_rows_are_columns_as_in_a_file(
    tmp_path: Path, serving: Callable[..., Any]
) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"amount": float(rng.normal()), "card": {"country": str(rng.choice(["NO", "SE"]))}}
        for _ in range(120)
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.warns(CalibrationWarning):
        model = package.fit(path, method="vae", members=1, max_epochs=2)
    assert isinstance(model, TableModel)
    model.save(tmp_path / "model")
    with serving(tmp_path / "model") as client:
        status, found = client.score({"rows": rows})
        assert status == 200, found
        scores = [row["anomaly_score"] for row in found["results"]]
        assert scores == model.anomaly_score(path).tolist()
        twice = {"amount": 1, "card": {"country": "NO"}, "card.country": "SE"}
        status, found = client.score({"rows": [twice]})
        assert status == 422
        assert "'card.country' is there twice" in found["error"]
