import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit, StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from likely import Classifier
from likely.core.errors import DataError, LikelyWarning, TrainingError
from likely.evaluate import accuracy, cross_validate, rmse


@pytest.fixture
def labelled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    return X, (X[:, 0] + rng.normal(size=120) > 0).astype(int)


def test_every_row_is_scored_by_a_model_that_did_not_see_it(labelled):
    X, y = labelled
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    chance = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    expected = np.log(chance[np.arange(120), y])
    result = cross_validate(GaussianNB(), X, y, random_state=0, metrics={"accuracy": accuracy})
    np.testing.assert_allclose(result.rows, expected)
    np.testing.assert_array_equal(result.index, np.arange(120))
    assert result.score == pytest.approx(expected.mean())
    assert result.standard_error == pytest.approx(expected.std(ddof=1) / np.sqrt(120))
    assert result.metrics["accuracy"] == accuracy(y, chance.argmax(1))
    assert result.seconds > 0


def test_the_model_given_is_left_unfitted(labelled):
    model = LogisticRegression()
    cross_validate(model, *labelled)
    assert not hasattr(model, "coef_")


def test_splitters_and_lists_of_rows_are_folds(labelled):
    X, y = labelled
    splitter = ShuffleSplit(3, test_size=0.25, random_state=1)
    by_splitter = cross_validate(GaussianNB(), X, y, cv=splitter)
    assert len(by_splitter.rows) == 90
    assert cross_validate(GaussianNB(), X, y, cv=list(splitter.split(X))).score == by_splitter.score
    np.testing.assert_array_equal(by_splitter.index, np.sort(np.concatenate([test for _, test in splitter.split(X)])))
    first = np.arange(120) < 60
    by_mask = cross_validate(GaussianNB(), X, y, cv=[(first, ~first)])
    np.testing.assert_array_equal(by_mask.index, np.arange(60, 120))


@pytest.mark.parametrize("model", [Classifier(), GaussianNB(), make_pipeline(StandardScaler(), Classifier())], ids=str)
def test_a_class_absent_from_training_has_probability_zero(model, labelled):
    X, y = labelled
    y = y.astype("<U4")
    y[[3, 70]] = "rare"
    half = np.arange(120) % 2 == 0
    folds = [(np.flatnonzero(half), np.flatnonzero(~half)), (np.flatnonzero(~half), np.flatnonzero(half))]
    y[70] = "0"  # row 3 is the only one of its class: no model of the other fold saw it
    with pytest.warns(LikelyWarning, match="y has the class 'rare', which the model never saw in training"):
        result = cross_validate(model, X, y, cv=folds)
    assert np.flatnonzero(result.rows == -np.inf).tolist() == [3]
    assert np.isfinite(np.delete(result.rows, 3)).all()
    assert result.score == -np.inf


def test_missing_targets_do_not_count(known, draws):
    X, y = draws(100)
    y[::4] = np.nan
    result = cross_validate(known(), X, y, metrics={"rmse": rmse}, random_state=0)
    seen = ~np.isnan(y)
    assert result.score == pytest.approx(known().log_prob(X[seen], y[seen]).mean())
    assert result.metrics["rmse"] == pytest.approx(rmse(y[seen], X[seen, 0]))


def test_other_scores_by_row(known, draws):
    X, y = draws(80)
    result = cross_validate(known(), X, y, score=lambda model, X, y: -((y - model.predict(X)) ** 2), random_state=0)
    assert result.score == pytest.approx(-(rmse(y, X[:, 0]) ** 2))


def test_errors(known, draws):
    X, y = draws(20)
    with pytest.raises(DataError, match="cv must be from 2 folds to one per row"):
        cross_validate(known(), X, y, cv=21)
    with pytest.raises(DataError, match=r"score must give one number per row, \(4,\); found shape \(\)"):
        cross_validate(known(), X, y, score=lambda model, X, y: 1.0)
    with pytest.raises(TrainingError, match="the score is NaN in fold 1"):
        cross_validate(known(), X, y, score=lambda model, X, y: np.full(len(y), np.nan))
