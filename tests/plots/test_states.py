from __future__ import annotations

import numpy as np
import pytest

from likely import HiddenMarkov
from likely.core.errors import DataError
from likely.likelihoods import Normal
from likely.plots.states import state_path


@pytest.fixture(scope="module")
def model():
    return HiddenMarkov.from_parameters(Normal(1.0), [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.0], [5.0]])


X = np.array([0.1, -0.3, 0.5, 5.2, 4.1, 4.5, 0.0, -0.1])


def strip(ax):
    (inset,) = ax.child_axes
    return inset


def test_bands_are_the_stays_of_the_decoded_path(model):
    ax = state_path(model, X)
    path = model.predict(X)
    assert path.tolist() == [0, 0, 0, 1, 1, 1, 0, 0]
    bands = [(p.get_x(), p.get_width(), p.get_label()) for p in ax.patches if p.get_label().startswith("stay")]
    assert bands == [(-0.5, 3.0, "stay in 0"), (2.5, 3.0, "stay in 1"), (5.5, 2.0, "stay in 0")]
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), X)
    assert ax.get_title(loc="left") == "2 changes between 2 states in 8 steps"


def test_the_strip_holds_the_posterior(model):
    posterior = model.predict_proba(X)
    first, second = strip(state_path(model, X)).collections
    for band, low, high in ((first, np.zeros(8), posterior[:, 0]), (second, posterior[:, 0], np.ones(8))):
        corners = band.get_paths()[0].vertices
        for t in range(8):
            inside = corners[np.abs(corners[:, 0] - (t - 0.5)) < 1e-9, 1]
            assert np.abs(inside - low[t]).min() < 1e-9
            assert np.abs(inside - high[t]).min() < 1e-9


def test_names_times_columns_and_missing_steps():
    model = HiddenMarkov.from_parameters(Normal(1.0), [0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.0, 1.0], [5.0, 6.0]])
    rows = np.column_stack([X, X + 1])
    rows[3] = np.nan
    years = np.arange(1990, 1998)
    ax = state_path(model, rows, column=1, time=years, names=["calm", "rough"], label="waves (m)", x_label="year")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["calm", "rough"]
    assert ax.get_xlim() == (1989.5, 1997.5)
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), rows[:, 1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("year", "waves (m)")


def test_it_draws_where_it_is_told(model):
    from matplotlib import pyplot as plt

    _, ax = plt.subplots()
    assert state_path(model, X, ax=ax, title="mine") is ax
    assert ax.get_title(loc="left") == "mine"
    assert state_path(model, X[:1]).get_xlim() == (-0.5, 0.5)


def test_errors(model):
    with pytest.raises(DataError, match="state_path draws one sequence"):
        state_path(model, [X, X])
    with pytest.raises(DataError, match="column=2: X has the columns 0 to 0"):
        state_path(model, X, column=2)
    with pytest.raises(DataError, match="names must be one for each of the 2 states; found 3"):
        state_path(model, X, names=["a", "b", "c"])
    with pytest.raises(DataError, match="time must be one rising number for each of the 8 steps"):
        state_path(model, X, time=np.zeros(8))
