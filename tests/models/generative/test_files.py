"""Files of generative models: what does not fit its own specs is refused."""

from __future__ import annotations

import numpy as np
import pytest

from likely import Autoregressive, Diffusion, Flow
from likely.core.errors import ModelFileError
from likely.inference import MAP
from likely.networks import MLP

ROWS = np.random.default_rng(0).normal(size=(30, 2))


def fitted(kind=Flow):
    options = {"transform": "affine", "layers": 1} if kind is Flow else {}
    return kind(network=MLP((4,)), inference=MAP(epochs=1), random_state=0, **options).fit(ROWS)


def copied(model, change):
    """The model as a file gives it back, after a change of what was learned or of its tensors."""
    learned, tensors = model._state()
    change(learned, tensors)
    blank = type(model)(**{name: vars(model)[name] for name in model._get_param_names()})
    blank._restore(learned, tensors)
    return blank


@pytest.mark.parametrize("kind", [Flow, Autoregressive])
def test_what_was_written_comes_back(kind):
    model = fitted(kind)
    again = copied(model, lambda learned, tensors: None)
    np.testing.assert_array_equal(again.log_prob(ROWS), model.log_prob(ROWS))


def scale_of_zero(learned, tensors):
    name = next(name for name in tensors if name.endswith("scale"))
    tensors[name] = tensors[name] * 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda learned, tensors: learned.update(missing="yes"), "does not fit its own specs"),
        (lambda learned, tensors: learned["form"].update(shape=[3]), "does not fit its own specs"),
        (scale_of_zero, "units that are not above 0"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    with pytest.raises(ModelFileError, match=message):
        copied(fitted(), change)


def test_ends_need_a_gap():
    pixels = np.repeat([[0.0], [0.0], [1.0], [3.0], [4.0], [7.0]], 2, 1)
    model = Diffusion(network=MLP((4,)), inference=MAP(epochs=1), random_state=0).fit(pixels)

    def close(learned, tensors):
        name = next(name for name in tensors if name.endswith("ends.low"))
        tensors[name] = tensors[name] * 0

    with pytest.raises(ModelFileError, match="without a gap"):
        copied(model, close)
