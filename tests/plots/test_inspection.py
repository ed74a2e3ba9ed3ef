"""scikit-learn's inspection works on our models, and its answers are drawn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import partial_dependence, permutation_importance

from likely import Classifier, Regressor, plots
from likely.core.errors import DataError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 2))


def title(ax):
    return ax.get_title(loc="left").replace("\n", " ")


def test_the_column_that_matters_is_named():
    model = Regressor().fit(X, X[:, 1] + 0.1 * RNG.normal(size=80))
    ax = plots.importance(permutation_importance(model, X, X[:, 1], random_state=0), ["age", "pay"])
    assert title(ax).startswith("pay matters most: without it the score falls by")
    assert [text.get_text() for text in ax.get_yticklabels()] == ["age", "pay"]
    noise = Regressor().fit(X[:40], RNG.normal(size=40))
    none = permutation_importance(noise, X[40:], RNG.normal(size=40), random_state=0)
    assert plots.importance(none).get_yticklabels()[0].get_text() in ("x0", "x1")
    with pytest.raises(DataError, match="names has 1 names for 2 columns"):
        plots.importance(none, ["a"])
    with pytest.raises(DataError, match="permutation_importance returns; found a dict"):
        plots.importance({})


def test_the_mean_prediction_is_drawn_at_each_value():
    model = Regressor().fit(np.column_stack([X, X[:, 0] ** 2]), X[:, 0] ** 2)
    rows = np.column_stack([X, X[:, 0] ** 2])
    result = partial_dependence(model, rows, [2], kind="both")
    ax = plots.partial_dependence(result, "x²", label="visits")
    assert title(ax).startswith("visits rises with x²")
    np.testing.assert_allclose(ax.get_lines()[-1].get_ydata(), result["average"][0])
    assert len(ax.get_lines()) == 81
    flat = dict(partial_dependence(model, rows, [0]), average=np.zeros((1, 80)))
    assert title(plots.partial_dependence(flat)) == "prediction does not depend on x"
    bent = dict(flat, average=np.sin(np.arange(80.0))[None])
    assert title(plots.partial_dependence(bent)).endswith("up and down")
    labels = Classifier(prior="normal(1.0)").fit(X, X[:, 0] > 0)
    assert "rises with" in title(plots.partial_dependence(partial_dependence(labels, X, [0]), "age"))
    with pytest.raises(DataError, match="of one column; the result has 2"):
        plots.partial_dependence(partial_dependence(model, rows, [(0, 1)], grid_resolution=3))
    with pytest.raises(DataError, match="or takes a model, its rows X and a column; found an int"):
        plots.partial_dependence(3)


def test_a_model_its_rows_and_a_column_are_measured_as_scikit_learn_does():
    frame = pd.DataFrame(X, columns=["Temp", "Wind"])
    model = Regressor().fit(frame, X[:, 0])
    known = partial_dependence(model, frame, ["Temp"])["average"][0]
    for rows, column, name in ((frame, "Temp", "Temp"), (frame, ["Temp"], "Temp"), (frame, 0, "Temp")):
        ax = plots.partial_dependence(model, rows, column)
        np.testing.assert_allclose(ax.get_lines()[-1].get_ydata(), known)
        assert ax.get_xlabel() == name
    assert plots.partial_dependence(Regressor().fit(X, X[:, 0]), X, 1).get_xlabel() == "x1"
    with pytest.raises(
        DataError, match=r"draws one column of X; found column='Rain', and X has the columns Temp, Wind"
    ):
        plots.partial_dependence(model, frame, "Rain")
    with pytest.raises(DataError, match=r"draws one column of X; found column=None, and X has None"):
        plots.partial_dependence(model)
