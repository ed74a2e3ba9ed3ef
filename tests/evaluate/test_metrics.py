import numpy as np
import pytest
import torch
from sklearn import metrics as sk

from likely import evaluate
from likely.core.errors import DataError


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(0)
    actual = rng.integers(0, 3, size=200)
    predicted = np.where(rng.random(200) < 0.7, actual, rng.integers(0, 3, size=200))
    return actual, predicted


def test_regression_metrics_are_scikit_learns():
    rng = np.random.default_rng(1)
    actual, predicted, weight = rng.normal(size=50), rng.normal(size=50), rng.random(50)
    assert evaluate.rmse(actual, predicted, weight) == pytest.approx(
        np.sqrt(sk.mean_squared_error(actual, predicted, sample_weight=weight))
    )
    assert evaluate.mae(actual, predicted) == sk.mean_absolute_error(actual, predicted)
    assert evaluate.r2(actual, predicted) == sk.r2_score(actual, predicted)


def test_class_metrics_are_scikit_learns_macro(labels):
    assert evaluate.accuracy(*labels) == sk.accuracy_score(*labels)
    assert evaluate.precision(*labels) == sk.precision_score(*labels, average="macro")
    assert evaluate.recall(*labels) == sk.recall_score(*labels, average="macro")
    assert evaluate.f1(*labels) == sk.f1_score(*labels, average="macro")
    np.testing.assert_allclose(evaluate.f1(*labels, average=None), sk.f1_score(*labels, average=None))


def test_rows_of_the_confusion_matrix_are_actual(labels):
    actual, predicted = labels
    matrix = evaluate.confusion_matrix(actual, predicted)
    np.testing.assert_array_equal(matrix.sum(1), np.bincount(actual))
    np.testing.assert_array_equal(matrix.sum(0), np.bincount(predicted))
    hits = np.diag(matrix)
    assert evaluate.precision(actual, predicted) == pytest.approx((hits / matrix.sum(0)).mean())
    assert evaluate.recall(actual, predicted) == pytest.approx((hits / matrix.sum(1)).mean())


def test_a_class_that_is_never_predicted_has_precision_0():
    assert evaluate.precision([0, 1, 2], [0, 1, 1], average=None)[2] == 0


def test_roc_auc_takes_scores_or_probabilities():
    rng = np.random.default_rng(2)
    actual, score = rng.integers(0, 2, size=60), rng.random(60)
    area = sk.roc_auc_score(actual, score)
    assert evaluate.roc_auc(actual, score) == area
    assert evaluate.roc_auc(actual, np.stack([1 - score, score], 1)) == area
    chance = rng.dirichlet(np.ones(3), size=60)
    several = np.arange(60) % 3
    assert evaluate.roc_auc(several, chance) == sk.roc_auc_score(several, chance, multi_class="ovr")


def test_brier_of_certain_forecasts():
    chance = np.eye(3)
    assert evaluate.brier([0, 1, 2], chance) == 0
    assert evaluate.brier([1, 2, 0], chance) == pytest.approx(2)  # a sure miss is at distance √2
    assert evaluate.brier([0, 1], [0.2, 0.7]) == pytest.approx((0.2**2 + 0.3**2) / 2)


@pytest.mark.parametrize("size", [2, 10, 50257])
def test_perplexity_of_the_uniform_is_the_number_of_outcomes(size):
    assert evaluate.perplexity([0, 1, 1], np.full((3, size), 1 / size)) == pytest.approx(size)


def test_perplexity_is_the_exponential_of_the_cross_entropy():
    rng = np.random.default_rng(3)
    chance, actual = rng.dirichlet(np.ones(4), size=30), rng.integers(0, 4, size=30)
    expected = np.exp(evaluate.log_loss(actual, chance, labels=range(4)))
    assert evaluate.perplexity(actual, chance) == pytest.approx(expected)
    names = np.array(["a", "b", "c", "d"])
    assert evaluate.perplexity(names[actual], chance, labels=names) == pytest.approx(expected)
    tokens = torch.as_tensor(chance).reshape(5, 6, 4)
    assert evaluate.perplexity(torch.as_tensor(actual).reshape(5, 6), tokens) == pytest.approx(expected)


def test_missing_tokens_do_not_count():
    chance = np.array([[0.5, 0.5], [0.9, 0.1], [0.25, 0.75]])
    assert evaluate.perplexity([0, -1, 1], chance, missing_label=-1) == pytest.approx(
        evaluate.perplexity([0, 1], chance[[0, 2]])
    )
    assert evaluate.perplexity([0, 1], [[0.0, 1.0], [0.5, 0.5]]) == np.inf


@pytest.mark.parametrize(
    ("actual", "options", "message"),
    [
        ([0, 3], {}, "actual must hold a column from 0 to 2 everywhere; .* missing_label= to leave one out"),
        ([0, -1], {}, "actual must hold a column from 0 to 2"),
        (["a", "z"], {"labels": ["a", "b", "c"]}, "actual must hold one of the 3 labels"),
        ([0, 1, 2], {}, "actual has 3 rows and probabilities has 2; they must agree"),
        ([-1, -1], {"missing_label": -1}, "actual has no target at all"),
    ],
)
def test_perplexity_names_bad_targets(actual, options, message):
    with pytest.raises(DataError, match=message):
        evaluate.perplexity(actual, np.full((2, 3), 1 / 3), **options)
