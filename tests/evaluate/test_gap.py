import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from likely.evaluate import generalisation_gap, log_score


def test_a_model_that_does_not_learn_has_no_gap(known, draws, seed):
    """A z-score is beyond 5 in 1 of 10⁶ seeds."""
    train, test = draws(1000, seed=2 * seed), draws(1000, seed=2 * seed + 1)
    gap = generalisation_gap(known(), *train, *test)
    assert abs(gap.gap) < 5 * gap.standard_error
    assert gap.train == pytest.approx(log_score(known(), *train))


def test_many_useless_features_make_a_gap():
    """Over 300 seeds the gap is 9.7 ± 0.7 standard errors: 4 lie 7 of these spreads below."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 200)), rng.integers(0, 2, size=400)
    model = GaussianNB().fit(X[:200], y[:200])
    gap = generalisation_gap(model, X[:200], y[:200], X[200:], y[200:])
    assert gap.gap > 4 * gap.standard_error
    assert gap.gap == pytest.approx(gap.train - gap.test)
    assert str(gap).startswith("train -")


def test_the_score_may_be_chosen():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, size=60)
    model = KNeighborsClassifier(1).fit(X[:30], y[:30])

    def hits(model, X, y):
        return (model.predict(X) == y).astype(float)

    gap = generalisation_gap(model, X[:30], y[:30], X[30:], y[30:], score=hits)
    assert gap.train == 1
    assert gap.test == pytest.approx(model.score(X[30:], y[30:]))
