import numpy as np
import pytest
import torch
from matplotlib import pyplot as plt

from likely.core.errors import DataError
from likely.plots.implicit import implicit_regularisation
from likely.theory.implicit_regularisation import implicit_regularisation as compared

TWO = compared(lambda theta: (theta[0] * theta[1] - 1) ** 2, torch.tensor([2.0, 0.1]), rate=0.02, steps=15)
SCALE = torch.tensor([1.0, 0.5, 0.2])
THREE = compared(lambda theta: torch.cosh(SCALE * theta).sum(), torch.tensor([1.0, -2.0, 3.0]), rate=0.1, steps=12)


def title(ax):
    return ax.get_title(loc="left").replace("\n", " ")


def test_two_parameters_are_drawn_in_their_plane():
    ax = implicit_regularisation(TWO)
    lines = {line.get_label(): np.column_stack(line.get_data()) for line in ax.lines}
    np.testing.assert_allclose(lines["gradient descent"], TWO.path, rtol=1e-6)
    np.testing.assert_allclose(lines["flow of L"], TWO.plain, rtol=1e-6)
    np.testing.assert_allclose(lines["flow of L + α/4‖∇L‖²"], TWO.modified, rtol=1e-6)


def test_more_are_drawn_as_distances_whose_largest_are_the_gaps():
    ax = implicit_regularisation(THREE)
    plain, modified = (np.asarray(line.get_ydata()) for line in ax.lines[:2])
    assert plain.max() == pytest.approx(THREE.plain_gap, rel=1e-5)
    assert modified.max() == pytest.approx(THREE.modified_gap, rel=1e-5)


def test_the_title_says_how_much_closer():
    closer = TWO.plain_gap / TWO.modified_gap
    assert closer > 3
    assert title(implicit_regularisation(TWO)) == f"The flow of L + α/4‖∇L‖² is {closer:.2g} × as close as that of L"


def test_it_draws_on_the_axes_it_is_given_and_takes_a_title():
    _, ax = plt.subplots()
    assert implicit_regularisation(THREE, title="Flows", ax=ax) is ax
    assert title(ax) == "Flows"


def test_what_does_not_fit_is_named():
    with pytest.raises(DataError, match=r"What theory\.implicit_regularisation gives is needed; found a list"):
        implicit_regularisation([1.0])
