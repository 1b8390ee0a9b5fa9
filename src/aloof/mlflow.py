"""Models in MLflow: logged, loaded, served. The model folder is kept as it is; no pickle.

>>> import mlflow, aloof.mlflow  # doctest: +SKIP
>>> with mlflow.start_run():  # doctest: +SKIP
...     info = aloof.mlflow.log_model(model, "payments")
>>> mlflow.pyfunc.load_model(info.model_uri).predict(frame)  # doctest: +SKIP
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aloof._version import __version__
from aloof.exceptions import MissingExtraError, ModelError
from aloof.models import Model
from aloof.models.arrays import ArrayModel
from aloof.models.card import digests
from aloof.models.loading import open_model
from aloof.models.table import TableModel
from aloof.models.table.columns.number import NumberColumn

if TYPE_CHECKING:
    from aloof.estimators import Detector

__all__ = ["load_model", "log_model", "save_model", "signature_of"]

_FLAVOR = "aloof"
_FOLDER = "model"


def log_model(
    model: Model | Detector | str | os.PathLike[str], name: str = "model", **options: Any
) -> Any:
    """Log a model to the active run of MLflow, which is started where there is none.

    Parameters
    ----------
    model
        A table model, a detector, or the folder of either.
    name
        Of the model in MLflow.
    **options
        Of ``mlflow.pyfunc.log_model``, such as ``registered_model_name`` or
        ``input_example``.

    Returns
    -------
    MLflow's ``ModelInfo``; its ``model_uri`` is what `load_model` and MLflow's tools take.
    """
    mlflow = _mlflow()

    class _Us:
        save_model = staticmethod(save_model)

    return mlflow.models.Model.log(
        artifact_path=None, name=name, flavor=_Us, model=_opened(model), **options
    )


def save_model(
    model: Model | Detector | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    mlflow_model: Any = None,
    **options: Any,
) -> None:
    """Write a model to a folder in MLflow's format; for parameters, see `log_model`.

    Parameters
    ----------
    path
        The folder, which must not exist.
    mlflow_model
        What MLflow hands over; nothing you need.
    """
    mlflow = _mlflow()
    fitted = _opened(model)
    described = mlflow.models.Model() if mlflow_model is None else mlflow_model
    described.add_flavor(_FLAVOR, aloof_version=__version__, data=f"data/{_FOLDER}")
    options.setdefault("signature", signature_of(fitted))
    options.setdefault("pip_requirements", [f"aloof=={__version__}"])
    with tempfile.TemporaryDirectory(prefix="aloof-") as place:
        folder = Path(place) / _FOLDER
        fitted.save(folder)
        about = {"aloof": {"title": fitted.title, "digests": digests(folder)}}
        metadata = {**about, **(options.pop("metadata", None) or {})}
        mlflow.pyfunc.save_model(
            os.fspath(path),
            loader_module=__name__,
            data_path=str(folder),
            mlflow_model=described,
            metadata=metadata,
            **options,
        )


def load_model(model_uri: str, *, device: str = "auto") -> Model:
    """Return the aloof model that was logged, with all that it can do.

    ``mlflow.pyfunc.load_model`` gives one that predicts, and nothing else.

    Parameters
    ----------
    model_uri
        As MLflow writes it: ``models:/...``, ``runs:/...``, or a folder.
    device
        Where to score.
    """
    mlflow = _mlflow()
    local = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri))
    flavors = mlflow.models.Model.load(str(local)).flavors
    if _FLAVOR not in flavors:
        raise ModelError(
            f"{model_uri} was not logged by aloof.mlflow; it has the flavors "
            f"{', '.join(flavors)}. Open it with mlflow.pyfunc.load_model."
        )
    return open_model(local / flavors[_FLAVOR]["data"], device=device)


def signature_of(model: Model) -> Any:
    """Return what goes into a model and comes out of it, as MLflow says it.

    Numbers are ``double``, unless training read them from text of a dialect of its own; text
    is ``string``; other columns may be of any type, as they may in training.
    """
    types: Any = _mlflow().types
    ColSpec, Schema, AnyType = types.ColSpec, types.Schema, types.schema.AnyType
    ModelSignature = _mlflow().models.ModelSignature
    verdict = [ColSpec("double", "anomaly_score"), ColSpec("double", "p_value")]
    verdict = verdict if model.detector.calibration_scores_ is not None else verdict[:1]
    outputs = [*verdict, ColSpec("boolean", "is_anomaly")]
    if isinstance(model, ArrayModel):
        shape = (-1, *model.detector.shape_)
        inputs = Schema([types.TensorSpec(np.dtype(np.float64), shape)])
        return ModelSignature(inputs, Schema(outputs))
    assert isinstance(model, TableModel)
    columns = [] if model.id is None else [ColSpec(AnyType(), model.id, required=False)]
    for column in model.encoder.columns:
        if isinstance(column, NumberColumn) and column.name not in model.encoder.readings:
            columns.append(ColSpec("double", column.name))
        elif column.reads_text:
            columns.append(ColSpec("string", column.name))
        else:
            columns.append(ColSpec(AnyType(), column.name, required=False))
    reasons = [
        ColSpec("string", f"reason_{place + 1}", required=False)
        for place in range(min(3, len(model.columns)))
    ]
    params = types.ParamSchema([types.ParamSpec("reasons", "long", 3)])
    return ModelSignature(Schema(columns), Schema([*outputs, *reasons]), params)


class _Pyfunc:
    """What MLflow calls.

    Parameters
    ----------
    model
        What scores.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Return scores, verdicts and reasons of rows, as a frame of pandas."""
        import pandas as pd

        model = self._model
        if isinstance(model, TableModel):
            if model.id is not None and model.id not in model_input:
                model = replace(model, id=None)
            n_reasons = int((params or {}).get("reasons", 3))
            return model.score(model_input, reasons=n_reasons)
        array = np.asarray(model_input, np.float64)
        scores = model.anomaly_score(array)
        found = pd.DataFrame(model.verdicts(scores, model.decide(scores)))
        return found.drop(columns=[] if found["p_value"].notna().any() else ["p_value"])


def _load_pyfunc(path: str) -> _Pyfunc:
    """Return what MLflow calls, of a model that `save_model` wrote."""
    return _Pyfunc(open_model(path, device="auto"))


def _opened(model: Model | Detector | str | os.PathLike[str]) -> Model:
    if isinstance(model, str | os.PathLike):
        model = open_model(model, device="cpu")
    found = model if isinstance(model, Model) else ArrayModel(detector=model)
    if not isinstance(found, TableModel | ArrayModel):
        raise ModelError(
            f"MLflow takes models of tables and arrays, not of {found.kind}. Log its folder "
            "with mlflow.log_artifacts, and open it with aloof.load."
        )
    return found


def _mlflow() -> Any:
    try:
        import mlflow
        import mlflow.artifacts
        import mlflow.models
        import mlflow.pyfunc
        import mlflow.types
    except ImportError as error:
        raise MissingExtraError("mlflow", "mlflow", "Logging a model") from error
    return mlflow
