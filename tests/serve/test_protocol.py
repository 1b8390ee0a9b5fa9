"""What programs rely on: the Open Inference Protocol, OpenAPI, metrics."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from prometheus_client.parser import text_string_to_metric_families
from serve_rows import in_types

from aloof.models.table import TableModel

PATH = "/v2/models/model/infer"


def inputs(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows as a KServe client would send them."""
    found = []
    for name in records[0]:
        values = [record[name] for record in records]
        number = name in ("amount", "weight")
        data = values if number else [_text(v) for v in values]
        kind = "FP64" if number else "BYTES"
        found.append({"name": name, "shape": [len(values)], "datatype": kind, "data": data})
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def binary(tensors: list[dict[str, Any]], **more: Any) -> tuple[bytes, str]:
    """Return the same as Triton's client would: data in binary behind the JSON."""
    behind = b""
    told = []
    for tensor in tensors:
        if tensor["datatype"] == "BYTES":
            raw = [value.encode() for value in tensor["data"]]
            data = b"".join(struct.pack("<I", len(value)) + value for value in raw)
        else:
            data = np.array(tensor["data"], np.float64).tobytes()
        behind += data
        size = {"binary_data_size": len(data)}
        told.append({k: v for k, v in tensor.items() if k != "data"} | {"parameters": size})
    head = json.dumps({"inputs": told, **more}).encode()
    return head + behind, str(len(head))


def test_the_open_inference_protocol(
    made: Path, new: pa.Table, model: TableModel, serving: Callable[..., Any]
) -> None:
    records = in_types(new)[:40]
    scores = model.anomaly_score(new)[:40].tolist()
    with serving(made / "model") as client:
        status, found = client.get("/v2")
        assert (status, found["name"]) == (200, "aloof")
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/model/ready"):
            assert client.get(path)[0] == 200
        status, found = client.get("/v2/models/model")
        assert found["inputs"][0] == {"name": "amount", "datatype": "FP64", "shape": [-1]}
        assert [each["name"] for each in found["outputs"]] == [
            "anomaly_score",
            "p_value",
            "is_anomaly",
        ]
        body = {"id": "seven", "inputs": inputs(records), "parameters": {"reasons": 2}}
        status, found = client.score(body, PATH)
        assert status == 200, found
        assert (found["id"], found["model_name"]) == ("seven", "model")
        named = {output["name"]: output for output in found["outputs"]}
        assert named["anomaly_score"]["data"] == scores
        assert named["anomaly_score"]["shape"] == [40]
        flagged = named["is_anomaly"]["data"]
        assert [bool(text) for text in named["reasons"]["data"]] == flagged
        content, length = binary(
            inputs([r for r in records if r["weight"] is not None]),
            outputs=[{"name": "anomaly_score", "parameters": {"binary_data": True}}],
        )
        status, found = client.ask(
            "POST", PATH, content, Inference_Header_Content_Length=length
        )
        assert status == 200, found
        kept = [s for s, r in zip(scores, records, strict=True) if r["weight"] is not None]
        assert [each["data"] for each in found["outputs"]] == [kept]
        assert client.score(body, "/v2/models/model/versions/1/infer")[0] == 200
        assert client.score(body, "/v2/models/model/versions/2/infer")[0] == 404
        assert client.score(body, "/v2/models/other/infer")[0] == 404
        assert client.get("/v2/models/other/ready")[0] == 404


def test_malformed_inference_requests(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    good = inputs(in_types(new)[:2])
    with serving(made / "model") as client:
        for change in (
            {"shape": [3]},
            {"shape": [-1]},
            {"shape": [2**40]},
            {"shape": "2"},
            {"datatype": "FP8"},
            {"datatype": ["FP64"]},
            {"data": "text"},
            {"data": [[[1, 2]]]},
            {"data": ["a", "b"]},
            {"data": None},
            {"parameters": {"binary_data_size": 4}},
        ):
            status, found = client.score({"inputs": [good[1] | change, *good[2:]]}, PATH)
            assert status in (400, 422), (change, found)
        for body in ({}, [], {"inputs": []}, {"inputs": [1]}, {"inputs": good, "outputs": [1]}):
            assert client.score(body, PATH)[0] == 400
        assert client.score({"inputs": good, "parameters": {"reasons": "a"}}, PATH)[0] == 400
        content, length = binary(good[:1])
        for said in ("-1", "99999", "x", str(int(length) - 5)):
            status, _ = client.ask("POST", PATH, content, Inference_Header_Content_Length=said)
            assert status == 400
        assert client.metric("aloof_errors_total") == 0


def test_examples_of_the_description_work(made: Path, serving: Callable[..., Any]) -> None:
    with serving(made / "model") as client:
        status, api = client.get("/openapi.json")
        assert status == 200
        tried = 0
        for path, ways in api["paths"].items():
            url = path.replace("{name}", "model")
            for method in {"get", "post"} & {*ways}:
                body = ways[method].get("requestBody", {}).get("content", {})
                example = body.get("application/json", {}).get("example")
                sent = None if example is None else json.dumps(example)
                status, found = client.ask(method.upper(), url, sent, "application/json")
                assert status == 200, (path, found)
                tried += 1
        assert tried >= 16


def test_metrics_are_what_prometheus_reads(
    made: Path, new: pa.Table, serving: Callable[..., Any]
) -> None:
    records = in_types(new)
    with serving(made / "model") as client:
        _, found = client.score(records)
        flagged = sum(row["is_anomaly"] for row in found["results"])
        assert flagged
        client.get("/nothing/at/all")
        _, text = client.get("/metrics")
        families = {f.name: f for f in text_string_to_metric_families(text.decode())}
        samples = {s.name: s.value for f in families.values() for s in f.samples}
        assert samples["aloof_rows_total"] == len(records)
        assert samples["aloof_rows_flagged_total"] == flagged
        assert samples["aloof_model_ready"] == 1
        assert samples["aloof_queue_limit_rows"] == 20_000
        (seconds,) = (
            s.value
            for s in families["aloof_request_seconds"].samples
            if s.name.endswith("_count") and s.labels["route"] == "/score"
        )
        assert seconds == 1
        routes = {s.labels["route"] for s in families["aloof_requests"].samples}
        assert "/nothing/at/all" not in routes, "strangers would decide how many there are"
        for name in ("aloof_drift", "aloof_batch_rows", "process_resident_memory_bytes"):
            assert name in families
