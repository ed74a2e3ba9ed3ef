import numpy as np
import pytest

from likely.core.errors import DataError, SpecError
from likely.plots.capacities import capacity
from likely.theory.capacity import separable_fraction


def test_curves_are_covers_share_and_meet_at_the_capacity():
    ax = capacity((4, 30))
    drawn = {line.get_label(): line for line in ax.get_lines()}
    for d in (4, 30):
        x, y = drawn[f"d = {d}"].get_data()
        np.testing.assert_allclose(y, [separable_fraction(round(ratio * d), d) for ratio in x])
        assert y[np.isclose(x, 2)] == [0.5]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["d = 4", "d = 30"]
    assert ax.get_title(loc="left") == "A linear unit with d weights holds 2d points"


def test_errors():
    with pytest.raises(DataError, match="dimensions must be one or more numbers of weights"):
        capacity(())
    with pytest.raises(SpecError, match="dimension=0 must be a number of weights"):
        capacity((0,))
