"""A generative model in a file: plain values and tensors, and the checks that they fit each other when they return."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ...core.errors import ModelFileError
from ...core.learned import restore_columns
from ...core.random import isolated
from ...core.shapes import without_numbers
from ...inference import Posterior
from ..emissions import Columns
from .condition import ConditionForm
from .module import DensityModule
from .rows import RowForm

__all__ = ["restore", "state_of"]


def state_of(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What a fitted model learned: plain data, and the tensors of its posterior."""
    posterior, tensors = model.posterior_.state()
    names = getattr(model, "feature_names_in_", None)
    learned = {
        "n_features_in_": int(model.n_features_in_),
        "feature_names_in_": None if names is None else [str(name) for name in names],
        "form": model.form_.to_json(),
        "columns": model.columns_.to_json(),
        "condition": None if model.condition_ is None else model.condition_.to_json(),
        "missing": model.missing_,
        "posterior": posterior,
    }
    return learned, tensors


def restore(model: Any, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """The inverse of `state_of`; a `ModelFileError` for parts that do not fit each other."""
    restore_columns(model, learned)
    model.form_ = RowForm.from_json(learned["form"])
    model.columns_ = Columns.from_json(learned["columns"])
    model.missing_ = learned["missing"]
    alike = model.columns_.width == math.prod(model.form_.shape) and model.n_features_in_ == model.form_.shape[0]
    if not isinstance(model.missing_, bool) or not alike:
        raise ModelFileError("The file does not fit its own specs: its columns are not those of its rows.")
    condition = learned["condition"]
    model.condition_ = None if condition is None else ConditionForm.from_json(condition)
    model._check_arguments()
    posterior = learned["posterior"]
    restored = Posterior.kinds[posterior["kind"]].restore(_blank(model), posterior, tensors)
    for name, value in restored.buffers.items():
        if name.endswith(("scale", "unit")) and not bool((value > 0).all()):
            raise ModelFileError(f"The file has units that are not above 0: {name}.")
        if name.endswith(("ends.low", "ends.high")) and not bool((value[..., 2, :] > 0).all()):
            raise ModelFileError(f"The file has ends of columns without a gap beyond them: {name}.")
    model.posterior_ = restored


def _blank(model: Any) -> DensityModule:
    """A module to be filled from a file: shapes without memory, where building needs no numbers."""
    try:
        with without_numbers():
            return model._module()
    except (RuntimeError, NotImplementedError):  # a network whose building needs real numbers
        with isolated(0):
            return model._module()
