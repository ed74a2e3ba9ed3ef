import numpy as np
import pytest
import torch
from matplotlib import pyplot as plt

from likely.core.errors import DataError, SpecError
from likely.plots.matrices import convolution, derivatives
from likely.theory.convolution import toeplitz
from likely.theory.differentiate import hessian, jacobian

WEIGHT = torch.tensor([[1.0, -2.0, 0.0], [0.5, 0.0, 3.0]])
POINT = torch.tensor([0.1, -0.4, 0.2])


def title(ax):
    return ax.get_title(loc="left").replace("\n", " ")


def shown(ax):
    return np.asarray(ax.images[0].get_array())


def test_the_picture_is_the_jacobian():
    def function(x):
        return torch.tanh(WEIGHT @ x)

    ax = derivatives(function, POINT)
    np.testing.assert_allclose(shown(ax), jacobian(function, POINT))
    assert title(ax) == "Reverse mode takes 2 passes, forward mode 3"


def test_a_loss_takes_one_pass_back():
    assert title(derivatives(lambda x: x.square().sum(), POINT)) == "Reverse mode takes 1 pass, forward mode 3"


@pytest.mark.parametrize(
    ("signs", "text"),
    [
        ((1.0, 2.0, 3.0), "f curves up along every direction"),
        ((-1.0, -2.0, -3.0), "f curves down along every direction"),
        ((1.0, 0.0, -3.0), "f curves up along 1 of 3 directions, and down along 1"),
        ((1.0, 0.0, 0.0), "f curves up along 1 of 3 directions"),
        ((0.0, 0.0, 0.0), "f does not curve"),
    ],
)
def test_the_title_counts_the_directions_of_curvature(signs, text):
    def function(x):
        return (torch.tensor(signs) * x.square()).sum()

    ax = derivatives(function, POINT, order=2)
    np.testing.assert_allclose(shown(ax), hessian(function, POINT))
    assert title(ax) == text


@pytest.mark.parametrize("padding", ["valid", "zero", "full", "circular", "reflect"])
def test_the_picture_is_the_toeplitz_matrix(padding):
    kernel = [1.0, -2.0, 1.5]
    ax = convolution(kernel, 9, padding=padding, dilation=2)
    np.testing.assert_allclose(shown(ax), toeplitz(kernel, 9, padding=padding, dilation=2))


def test_borders_read_fewer_inputs():
    assert title(convolution([1.0, 2.0, 3.0], 8)) == "Each output reads 3 of 8 inputs, by the same 3 weights"
    assert title(convolution([1.0, 2.0, 3.0], 8, padding="zero")).startswith("Each output reads up to 3 of 8 inputs")


def test_few_numbers_are_written_and_many_are_not():
    texts = {text.get_text() for text in convolution([1.0, -2.0], 4).texts}
    assert {"1", "−2"} <= texts
    assert not {"1", "−2"} & {text.get_text() for text in convolution([1.0, -2.0], 40).texts}


def test_they_draw_on_the_axes_they_are_given_and_take_a_title():
    _, axes = plt.subplots(1, 2)
    assert derivatives(torch.sin, POINT, title="Slopes", ax=axes[0]) is axes[0]
    assert convolution([1.0], 3, title="Nothing moves", ax=axes[1]) is axes[1]
    assert (title(axes[0]), title(axes[1])) == ("Slopes", "Nothing moves")


def test_what_does_not_fit_is_named():
    with pytest.raises(SpecError, match=r"order=3 must be 1 \(the Jacobian\) or 2 \(the Hessian\)"):
        derivatives(torch.sin, POINT, order=3)
    with pytest.raises(DataError, match="function must have one output to have one Hessian; it has 3"):
        derivatives(torch.sin, POINT, order=2)
