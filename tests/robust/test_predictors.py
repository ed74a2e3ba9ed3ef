"""Certificates of classifiers that are asked through predict alone: any that there is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from likely import Classifier, GaussianProcess, NaiveBayes, SupportVector, TableModel
from likely.core.errors import DataError
from likely.likelihoods import Bernoulli
from likely.robust import certify
from likely.robust.predictors import Predicting, answering
from likely.robust.victim import Scoring


@pytest.mark.parametrize("name", ["process", "naive Bayes", "support vectors", "tree", "pipeline", "frame"])
def test_whatever_predicts_labels_is_certified(name, seed):
    """Two clouds 4 apart with a boundary in the middle: no radius is beyond 2 + what 60 rows may move it by."""
    rng = np.random.default_rng(seed)
    y = np.array(["a", "b"] * 30)
    X = np.column_stack([np.where(y == "a", -2.0, 2.0) + 0.2 * rng.normal(size=60), rng.normal(size=60)])
    rows = [[-2.0, 0.0], [2.0, 0.0]]
    models = {
        "process": GaussianProcess(likelihood=Bernoulli(), starts=1),
        "naive Bayes": NaiveBayes(),
        "support vectors": SupportVector(),
        "tree": DecisionTreeClassifier(random_state=0),
        "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
        "frame": make_pipeline(ColumnTransformer([("own", StandardScaler(), ["p", "q"])]), LogisticRegression()),
    }
    if name == "frame":
        X, rows = (pd.DataFrame(part, columns=["p", "q"]) for part in (X, rows))
    found = certify(models[name].fit(X, y), rows, sigma=0.5, n=300, n0=50, random_state=seed)
    np.testing.assert_array_equal(found.predicted, ["a", "b"])
    assert ((found.radius > 0.8) & (found.radius < 3)).all()


def test_labels_are_places_among_the_classes_whatever_they_are():
    X = [[0.0], [1.0], [2.0]]
    for y in (["b", "c", "a"], [30, 7, 9], [True, False, True]):
        tree = DecisionTreeClassifier(random_state=0).fit(X, y)
        model = answering(tree)
        np.testing.assert_array_equal(tree.classes_[model.labels(model.read(X))], y)


def test_what_has_gradients_is_asked_by_its_scores(net, clouds):
    assert isinstance(answering(net), Scoring)
    assert isinstance(answering(lambda x: x), Scoring)
    assert isinstance(answering(NaiveBayes().fit(*clouds)), Predicting)


def test_a_table_of_more_than_numbers_gets_the_call_that_works():
    frame = pd.DataFrame({"x": [-2.0, -1.0, 1.0, 2.0] * 5, "city": ["Oslo", "Voss"] * 10, "y": [*"aabb"] * 5})
    model = TableModel(Classifier(prior="normal(1.0)"), "y").fit(frame)
    with pytest.raises(
        DataError, match=r"found DataFrame\. .*certify\(model\.model_, model\.table_\.transform\(X\), si"
    ):
        certify(model, frame, 0.1)
    certified = certify(model.model_, model.table_.transform(frame), 0.1, n=100, random_state=0)
    np.testing.assert_array_equal(certified.predicted, model.predict(frame))
