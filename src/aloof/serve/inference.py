"""The Open Inference Protocol, version 2, as KServe and Triton speak it over HTTP.

Numbers come in JSON, or, as Triton's clients send them, behind it in binary; the answer is
JSON, which these clients read as well.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof._version import __version__
from aloof.serve.limits import Limits, Refused
from aloof.serve.served import Asked, Scored, Served, Tensor, parsed

__all__ = [
    "DATATYPES",
    "HEADER_LENGTH",
    "OUTPUTS",
    "as_outputs",
    "model_metadata",
    "read_inputs",
    "server_metadata",
]

# The header that says how much of a body is JSON.
HEADER_LENGTH = b"inference-header-content-length"
_TYPES: dict[str, Any] = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
}
DATATYPES = ("BYTES", *_TYPES)
OUTPUTS = {
    "anomaly_score": "FP64",
    "p_value": "FP64",
    "is_anomaly": "BOOL",
    "suppressed_by": "BYTES",
    "reasons": "BYTES",
}
_MOST_DIMENSIONS = 8
_SHAPE = 'Send {"inputs": [{"name": ..., "shape": [n, ...], "datatype": ..., "data": [...]}]}.'


def server_metadata() -> dict[str, Any]:
    """Return what the server is."""
    return {"name": "aloof", "version": __version__, "extensions": ["binary_tensor_data"]}


def model_metadata(name: str, served: Served[Any]) -> dict[str, Any]:
    """Return what a model takes and gives."""
    outputs = [
        {"name": output, "datatype": kind, "shape": [-1]}
        for output, kind in OUTPUTS.items()
        if output != "reasons"
        and (output != "suppressed_by" or served.rules())
        and (output != "p_value" or served.model.detector.calibration_scores_ is not None)
    ]
    return {
        "name": name,
        "versions": [served.version],
        "platform": "aloof",
        "inputs": served.inputs(),
        "outputs": outputs,
    }


def read_inputs(
    data: bytes, header_length: bytes | None, limits: Limits
) -> tuple[dict[str, Any], list[Tensor], Asked]:
    """Return the request as JSON has it, its tensors, and what it asks for.

    Parameters
    ----------
    data
        The body.
    header_length
        How many bytes of it are JSON; None: all.
    limits
        How much it may be.
    """
    head, binary = data, memoryview(b"")
    if header_length is not None:
        if not header_length.isdigit() or int(header_length) > len(data):
            raise Refused(400, "Inference-Header-Content-Length is not what it should be.")
        head, binary = data[: int(header_length)], memoryview(data)[int(header_length) :]
    request = parsed(head)
    inputs = request.get("inputs") if isinstance(request, dict) else None
    if not isinstance(inputs, list) or not inputs or not all(map(_is_input, inputs)):
        raise Refused(400, _SHAPE)
    limits.check_columns(len(inputs))
    tensors, used = [], 0
    for given in inputs:
        tensor, n = _tensor(given, binary, used, limits)
        used += n
        tensors.append(tensor)
    if used != len(binary):
        raise Refused(400, "There are more bytes behind the JSON than its tensors have.")
    if not isinstance(request.get("id", ""), str):
        raise Refused(400, "The id must be text.")
    _check_outputs(request.get("outputs", []))
    return request, tensors, _asked(request.get("parameters", {}))


def _is_input(given: Any) -> bool:
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        return False
    shape = given.get("shape")
    return (
        isinstance(shape, list)
        and 1 <= len(shape) <= _MOST_DIMENSIONS
        and all(type(size) is int and 0 <= size < 2**31 for size in shape)
    )


def _check_outputs(outputs: Any) -> None:
    if not isinstance(outputs, list):
        raise Refused(400, "The outputs must be a list.")
    for output in outputs:
        name = output.get("name") if isinstance(output, dict) else None
        if not isinstance(name, str) or name not in OUTPUTS:
            raise Refused(400, f"There are the outputs {', '.join(OUTPUTS)}.")


def _asked(parameters: Any) -> Asked:
    if not isinstance(parameters, dict):
        raise Refused(400, "The parameters must be an object.")
    reasons = parameters.get("reasons", 0)
    if type(reasons) is not int or not 0 <= reasons <= 100:
        raise Refused(400, "The parameter reasons must be a number from 0 to 100.")
    fills = parameters.get("missing_columns", "refuse")
    if fills not in ("refuse", "fill"):
        raise Refused(400, "The parameter missing_columns must be refuse or fill.")
    ignores = parameters.get("ignore_rules", False)
    if not isinstance(ignores, bool):
        raise Refused(400, "The parameter ignore_rules must be true or false.")
    return Asked(reasons=reasons, fills=fills == "fill", ignores_rules=ignores)


def _tensor(
    given: Mapping[str, Any], binary: memoryview, begin: int, limits: Limits
) -> tuple[Tensor, int]:
    """Return a tensor, and how many binary bytes it has, from `begin` on."""
    name, shape, kind = given["name"], tuple(given["shape"]), given.get("datatype")
    if not isinstance(kind, str) or kind not in DATATYPES:
        raise Refused(400, f"The datatype must be one of {', '.join(DATATYPES)}.")
    n = 1
    for size in shape:
        n *= size
    parameters = given.get("parameters")
    size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
    if size is not None:
        if type(size) is not int or not 0 <= size <= len(binary) - begin:
            raise Refused(400, "binary_data_size is not what it should be.")
        return Tensor(
            name, kind, shape, _from_binary(bytes(binary[begin : begin + size]), kind, shape, n)
        ), size
    if n > limits.unpacked:
        raise Refused(413, "The tensor has too many numbers.")
    return Tensor(name, kind, shape, _from_json(given.get("data"), kind, shape, n)), 0


def _from_binary(data: bytes, kind: str, shape: tuple[int, ...], n: int) -> NDArray[Any]:
    if kind != "BYTES":
        dtype = np.dtype(_TYPES[kind]).newbyteorder("<")
        if len(data) != n * dtype.itemsize:
            raise Refused(400, "binary_data_size and shape do not go together.")
        return np.frombuffer(data, dtype).reshape(shape)
    values: list[bytes] = []
    at = 0
    while at < len(data) and len(values) <= n:
        if at + 4 > len(data):
            break
        (size,) = struct.unpack_from("<I", data, at)
        values.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    if at != len(data) or len(values) != n:
        raise Refused(400, "binary_data_size and shape do not go together.")
    return _objects(values, shape)


def _from_json(data: Any, kind: str, shape: tuple[int, ...], n: int) -> NDArray[Any]:
    if not isinstance(data, list):
        raise Refused(400, _SHAPE)
    values: list[Any] = data
    for _ in range(len(shape) - 1):  # the protocol allows nested lists as well as flat ones
        if values and all(isinstance(value, list) for value in values):
            values = [value for part in values for value in part]
    if len(values) != n:
        raise Refused(400, "Data and shape do not go together.")
    if kind == "BYTES":
        if not all(value is None or isinstance(value, str) for value in values):
            raise Refused(400, "BYTES in JSON are text.")
        return _objects(values, shape)
    wanted = bool if kind == "BOOL" else (int, float)
    missing = kind.startswith("FP")
    for value in values:
        if not isinstance(value, wanted) or (isinstance(value, bool) and kind != "BOOL"):
            if value is not None or not missing:
                raise Refused(400, f"The data must be of the datatype {kind}.")
    try:
        array = np.array(
            [float("nan") if value is None else value for value in values], _TYPES[kind]
        )
    except (ValueError, OverflowError, TypeError) as error:
        raise Refused(400, f"The data must be of the datatype {kind}.") from error
    return array.reshape(shape)


def _objects(values: list[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)


def as_outputs(
    scored: Scored, *, request: Mapping[str, Any], model: str, version: str
) -> bytes:
    """Return scores as outputs of the protocol, in JSON."""
    n = len(scored.scores)
    found: dict[str, list[Any]] = {"anomaly_score": scored.scores.tolist()}
    if scored.p_values is not None:
        found["p_value"] = scored.p_values.tolist()
    found["is_anomaly"] = scored.flagged.tolist()
    if scored.suppressed_by is not None:
        found["suppressed_by"] = [rule or "" for rule in scored.suppressed_by]
    if scored.reasons is not None:
        found["reasons"] = ["; ".join(told) for told in scored.reasons]
    wanted = [output["name"] for output in request.get("outputs", ())]
    answer: dict[str, Any] = {"model_name": model, "model_version": version}
    if "id" in request:
        answer["id"] = request["id"]
    answer["outputs"] = [
        {"name": name, "datatype": OUTPUTS[name], "shape": [n], "data": values}
        for name, values in found.items()
        if not wanted or name in wanted
    ]
    if scored.warnings:
        answer["parameters"] = {"warnings": json.dumps(scored.warnings)}
    return json.dumps(answer, allow_nan=False).encode()
