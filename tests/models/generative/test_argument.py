"""Arguments under the name of a verb: set, they are arguments; asked for, the model has no such method."""

from __future__ import annotations

import pytest

from likely import Diffusion, Regressor
from likely.core.errors import LikelyError


def test_the_argument_is_kept_and_the_verb_is_refused():
    model = Diffusion(predict="velocity")
    assert model.get_params()["predict"] == "velocity"
    assert not hasattr(model, "predict")
    assert hasattr(Regressor(), "predict")
    with pytest.raises((AttributeError, LikelyError), match="predict"):
        getattr(model, "predict")  # noqa: B009


def test_it_can_be_set_anew():
    assert Diffusion().set_params(predict="data").get_params()["predict"] == "data"
