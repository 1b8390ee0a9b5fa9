"""The API in words that programs read, with examples that work for the models at hand."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from aloof.serve.answers import JSON
from aloof.serve.arrow import ARROW_FILE, ARROW_STREAM
from aloof.serve.inference import DATATYPES, OUTPUTS
from aloof.serve.limits import Limits
from aloof.serve.served import Served
from aloof.serve.slots import Slots

__all__ = ["describe_api"]

_OBJECT: dict[str, Any] = {"type": "object"}
_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}
_ERRORS = {
    "400": "The body is not what its Content-Type says.",
    "401": "No token, or a wrong one.",
    "403": "From a page of somebody else.",
    "404": "No such model.",
    "406": "No such form of an answer.",
    "408": "The body took too long to arrive.",
    "409": "The folder of the model cannot be used; the former model still answers.",
    "413": "Too many bytes, rows, columns, characters or pixels.",
    "415": "No such form of a body.",
    "421": "Asked for under a wrong name.",
    "422": "The rows do not fit the model.",
    "429": "Too many rows wait, or for too long. Try again after Retry-After seconds.",
    "503": "Not ready, or shutting down.",
}
_ALWAYS = ("401", "403", "421")
_SCORING = ("400", "404", "406", "408", "413", "415", "422", "429", "503")
_RESULT = {
    "type": "object",
    "properties": {
        "anomaly_score": {"type": "number", "description": "Higher is worse."},
        "p_value": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "is_anomaly": {"type": "boolean"},
        "suppressed_by": {
            "type": ["string", "null"],
            "description": "The rule by which reviewers know the row to be harmless.",
        },
        "reasons": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["anomaly_score", "p_value", "is_anomaly"],
}
_ANSWER = {
    "type": "object",
    "properties": {
        "model": {"type": "string"},
        "version": {"type": "string"},
        "results": {"type": "array", "items": _RESULT},
        "warnings": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["model", "version", "results"],
}
_STATE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "ready": {"type": "boolean"},
        "version": {"type": ["string", "null"]},
        "stale": {"type": "boolean"},
        "problem": {"type": "string"},
    },
    "required": ["name", "ready", "version", "stale", "problem"],
}
_OUTPUT = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "datatype": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer"}},
        "data": {"type": "array"},
    },
    "required": ["name", "datatype", "shape", "data"],
}
_INFERRED = {
    "type": "object",
    "properties": {
        "model_name": {"type": "string"},
        "model_version": {"type": "string"},
        "id": {"type": "string"},
        "outputs": {"type": "array", "items": _OUTPUT},
    },
    "required": ["model_name", "outputs"],
}
_REASONS = {
    "name": "reasons",
    "in": "query",
    "description": "How many reasons to give for each flagged row.",
    "schema": {"type": "integer", "minimum": 0, "maximum": 100, "default": 0},
}
_IGNORE_RULES = {
    "name": "ignore_rules",
    "in": "query",
    "description": "Flag rows, too, that reviewers know to be harmless.",
    "schema": {"type": "boolean", "default": False},
}
_TIMEOUT = {
    "name": "X-Timeout-Ms",
    "in": "header",
    "description": "How many milliseconds the client waits for the answer.",
    "schema": {"type": "integer", "minimum": 1},
}


def describe_api(
    app: FastAPI, slots: Slots, limits: Limits, has_tokens: bool
) -> dict[str, Any]:
    """Return the OpenAPI document.

    Parameters
    ----------
    app
        Its title and version are said.
    slots
        The models: schemas and examples are those of the first.
    limits
        What requests may ask for.
    has_tokens
        Whether requests need a token.
    """
    name, slot = next(iter(slots.items()))
    served = slot.ready()
    named = [
        {
            "name": "name",
            "in": "path",
            "required": True,
            "schema": {"type": "string", "enum": [*slots]},
        }
    ]
    score = _scoring(served, limits)
    infer = _inference(served)
    paths: dict[str, Any] = {
        "/models/{name}/score": {"post": score, "parameters": named},
        "/models": {"get": _asked("All models.", {**_OBJECT, "required": ["models"]})},
        "/models/{name}": {
            "get": _asked("What a model is.", _STATE, "404", "503"),
            "parameters": named,
        },
        "/models/{name}/reload": {
            "post": _asked("Read a model again, and use it if it works.", _STATE, "404", "409"),
            "parameters": named,
        },
        "/healthz": {"get": _asked("Whether the server is alive.", _OBJECT)},
        "/readyz": {"get": _asked("Whether all models are ready.", _OBJECT, "503")},
        "/metrics": {"get": _asked("Figures for Prometheus.", None)},
        "/openapi.json": {"get": _asked("This.", _OBJECT)},
        "/v2": {"get": _asked("Open Inference Protocol: the server.", _OBJECT)},
        "/v2/health/live": {"get": _asked("Whether the server is alive.", _OBJECT)},
        "/v2/health/ready": {"get": _asked("Whether all models are ready.", _OBJECT, "503")},
        "/v2/models/{name}": {
            "get": _asked("Open Inference Protocol: a model.", _OBJECT, "404", "503"),
            "parameters": named,
        },
        "/v2/models/{name}/ready": {
            "get": _asked("Whether a model is ready.", _OBJECT, "404", "503"),
            "parameters": named,
        },
        "/v2/models/{name}/infer": {"post": infer, "parameters": named},
    }
    if len(slots) == 1:
        paths["/score"] = {"post": score}
        paths["/model"] = {"get": _asked("What the model is.", _STATE, "404", "503")}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": app.title,
            "version": app.version,
            "description": f"Anomaly scores of {served.model.things} by {name}.",
        },
        "paths": paths,
    }
    if has_tokens:
        document["components"] = {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}
        }
        document["security"] = [{"token": []}]
    return document


def _asked(summary: str, schema: dict[str, Any] | None, *errors: str) -> dict[str, Any]:
    content = {"text/plain": {}} if schema is None else {JSON: {"schema": schema}}
    return {
        "summary": summary,
        "responses": {"200": {"description": summary, "content": content}, **_errors(errors)},
    }


def _errors(statuses: tuple[str, ...]) -> dict[str, Any]:
    content = {JSON: {"schema": _ERROR}}
    states = {"409", "503"}
    return {
        status: {
            "description": _ERRORS[status],
            "content": {JSON: {"schema": _OBJECT}} if status in states else content,
        }
        for status in sorted({*_ALWAYS, *statuses})
    }


def _scoring(served: Served[Any], limits: Limits) -> dict[str, Any]:
    example = served.example()
    content = {JSON: {"schema": _body(served, limits), "example": example}}
    answer = {
        JSON: {"schema": _ANSWER},
        ARROW_STREAM: {"schema": {"type": "string", "format": "binary"}},
    }
    others = ", ".join(kind for kind in served.takes if kind != JSON)
    return {
        "summary": f"Score {served.model.things}.",
        # What is valid CSV, or a valid image, is nothing that a schema could say.
        "description": f"Besides JSON, a body may be {others}.",
        "parameters": [
            *([_REASONS] if ARROW_FILE in served.takes else []),
            *([_IGNORE_RULES] if served.has_rules else []),
            _TIMEOUT,
        ],
        "requestBody": {"required": True, "content": content},
        "responses": {
            "200": {"description": "Scores, in the order of the body.", "content": answer},
            **_errors(_SCORING),
        },
    }


def _body(served: Served[Any], limits: Limits) -> dict[str, Any]:
    """Return the schema of a request in JSON."""
    (key,) = served.example()
    rows = {"type": "array", "items": served.row_schema(), "minItems": 1}
    rows["maxItems"] = limits.rows
    return {
        "type": "object",
        "properties": {key: rows},
        "required": [key],
        "additionalProperties": False,
    }


def _inference(served: Served[Any]) -> dict[str, Any]:
    tensor = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "shape": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
                "minItems": 1,
                "maxItems": 8,
            },
            "datatype": {"type": "string", "enum": [*DATATYPES]},
            "data": {"type": "array"},
        },
        "required": ["name", "shape", "datatype", "data"],
    }
    output = {
        "type": "object",
        "properties": {"name": {"type": "string", "enum": [*OUTPUTS]}},
        "required": ["name"],
    }
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "parameters": {
                "type": "object",
                "properties": {
                    "reasons": _REASONS["schema"],
                    "missing_columns": {"type": "string", "enum": ["refuse", "fill"]},
                    "ignore_rules": {"type": "boolean"},
                },
            },
            "inputs": {"type": "array", "items": tensor, "minItems": 1},
            "outputs": {"type": "array", "items": output},
        },
        "required": ["inputs"],
    }
    content: dict[str, Any] = {"schema": schema}
    example = served.example()
    if isinstance(example.get("rows", [None])[0], dict):
        kinds = {given["name"]: given["datatype"] for given in served.inputs()}
        content["example"] = {
            "inputs": [
                {
                    "name": name,
                    "shape": [1],
                    "datatype": kinds[name],
                    "data": [value if kinds[name] != "BYTES" or value is None else str(value)],
                }
                for name, value in example["rows"][0].items()
            ]
        }
    return {
        "summary": "Open Inference Protocol: score.",
        "parameters": [_TIMEOUT],
        "requestBody": {"required": True, "content": {JSON: content}},
        "responses": {
            "200": {"description": "Scores.", "content": {JSON: {"schema": _INFERRED}}},
            **_errors(_SCORING),
        },
    }
