"""A supervised model in a file: plain values and tensors, and the checks that they fit each other when they return."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from ...core.declared import COUNTS
from ...core.errors import LikelyWarning, ModelFileError
from ...core.learned import restore_columns
from ...data.kept_formula import KeptFormula
from ...inference import Posterior
from ...likelihoods import Target
from .build import Plan
from .inputs import KINDS, rows_of_zeros
from .targets import is_coupled, offsets_of_targets
from .texts import network_of, restore_texts, state_of_texts
from .units import check_restored

__all__ = ["restore", "state_of"]

MOST_NUMBERS = 10**8
"""That one row, or η of one row, of a model in a file may have."""


def state_of(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What a fitted model learned: plain data, and the tensors of its posterior."""
    posterior, tensors = model.posterior_.state()
    names = getattr(model, "feature_names_in_", None)
    learned = {
        "n_features_in": int(model.n_features_in_),
        "feature_names_in": None if names is None else [str(name) for name in names],
        "positions": list(model.positions_),
        "in_shape": list(model.in_shape_),
        "kind": model.kind_,
        "per_position": model.per_position_,
        "target": model.target_.to_json(),
        "plan": model.plan_.to_json(),
        "posterior": posterior,
    }
    if model.offset_:
        learned["offset"] = True
    if constants := vars(model).get("_constants"):
        learned["constants"] = constants  # for who reads the file without building the model
    if (formula := vars(model).get("formula_")) is not None:
        strange = None if formula.of_file else formula.strange
        if strange is None:
            learned["formula"] = formula.to_json()
        else:
            warnings.warn(
                f"The formula is not kept in the file: {strange!r} is more than a file may call. Give the loaded model "
                "the columns design(frame).",
                LikelyWarning,
                stacklevel=5,
            )
    state, own = state_of_texts(model)
    return learned | state, tensors | own


def restore(model: Any, learned: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """The inverse of `state_of`; a `ModelFileError` for parts that do not fit each other."""
    restore_columns(model, {f"{name}_": learned[name] for name in ("n_features_in", "feature_names_in")})
    model.positions_, model.in_shape_ = (_sizes(learned, name) for name in ("positions", "in_shape"))
    model.kind_, model.per_position_ = learned.get("kind", "tensor"), learned.get("per_position", False)
    model.offset_ = learned.get("offset", False)
    if not isinstance(model.offset_, bool):
        raise ModelFileError(f"The file has offset={model.offset_!r}; it must be true or false.")
    model._constants = _numbers(learned.get("constants", {}))
    vars(model).pop("formula_", None)
    if "formula" in learned:
        model.formula_ = KeptFormula.from_json(learned["formula"])
    if model.kind_ not in KINDS or not isinstance(model.per_position_, bool):
        raise ModelFileError(f"The file has rows of an unknown kind: {model.kind_!r}, {model.per_position_!r}.")
    tensors = restore_texts(model, learned, tensors)
    model.target_ = Target.from_json(learned["target"])
    model.plan_ = Plan.from_json(learned["plan"])
    model.likelihood_ = likelihood = model._likelihood()
    names = getattr(model, "feature_names_in_", None)
    width = model.in_shape_[0] if model.kind_ != "sequence" else (*model.in_shape_, 1)[1]
    if width != model.n_features_in_ or (names is not None and len(names) != model.n_features_in_):
        raise ModelFileError("The file does not fit its own specs: its columns are not those of its network.")
    size = likelihood.size(model.target_)
    coupling = likelihood.coupling(model.target_) if is_coupled(model) else 0
    sizes = (likelihood.shared(model.target_), coupling)
    if (model.plan_.shared, model.plan_.coupling) != sizes or math.prod(model.positions_) * size > MOST_NUMBERS:
        raise ModelFileError(f"The file does not fit its own specs: {model.target_} has {size} numbers η.")
    module = model.plan_.blank(network_of(model), size, tensors)
    posterior = learned["posterior"]
    model.posterior_ = Posterior.kinds[posterior["kind"]].restore(module, posterior, tensors)
    check_restored(model.posterior_.buffers)
    _check_answer(model, size + coupling)


@torch.no_grad()
def _check_answer(model: Any, size: int) -> None:
    """Raise a `ModelFileError` unless the network answers with η of the shape of the targets."""
    network = network_of(model)
    own = (
        network.out_lengths(torch.ones(1, dtype=torch.long)) is not None
    )  # it may need as many steps as it was built for
    x = rows_of_zeros(model.kind_, model.in_shape_, model.in_shape_[0] if own else 3)
    x = x.to(torch.long if model.plan_.integer else model.posterior_.dtype)
    eta = functional_call(model.posterior_.module, model.posterior_.member(0), (x,))
    offsets = offsets_of_targets(model, x)
    entries = len(x) if offsets is None else int(offsets[-1])
    if tuple(eta.shape) != (entries, *model.positions_, size):
        answer = tuple(eta.shape[1:])
        raise ModelFileError(
            f"The file does not fit its own specs: its network gives {answer}, not {(*model.positions_, size)}."
        )


def _numbers(constants: Any) -> dict[str, float]:
    """Numbers by name from a file."""
    if not isinstance(constants, dict) or not all(type(value) is float for value in constants.values()):
        raise ModelFileError(f"The file has constants={constants!r}; they must be numbers by name.")
    return constants


def _sizes(learned: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """A shape from a file."""
    sizes = learned[name]
    if not COUNTS.holds(sizes) or 0 in sizes or math.prod(sizes) > MOST_NUMBERS:
        raise ModelFileError(f"The file has {name}={sizes!r}; it must be sizes above 0 that memory can hold.")
    return tuple(sizes)
