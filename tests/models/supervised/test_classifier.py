"""What a classifier answers, for labels of any kind and logits of any size."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import log_expit, log_softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

import likely
from likely import Classifier, GaussianProcess, NaiveBayes
from likely.core.errors import DataError, SpecError
from likely.inference import MAP, Ensemble
from likely.likelihoods import Bernoulli, Categorical, Ordinal
from likely.networks import MLP
from likely.optim import Adam
from likely.priors import Normal

QUICK = MAP(Adam(0.05), epochs=20, batch_size=None)


def draw(classes, rows=300, seed=0):
    """Labels from softmax regression with three columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    logits = X @ rng.normal(size=(3, classes))
    return X, (logits + rng.gumbel(size=logits.shape)).argmax(1)


@pytest.mark.parametrize(
    "names",
    [
        np.array(["no", "yes"]),
        np.array([False, True]),
        np.array([3, 17]),
        np.array([-1, 1]),
        np.array([0.0, 2.0]),
        np.array(["low", "middle", "very high"]),
        np.array([5, 2, 9]),
        np.array(["a", "b"], dtype=object),
    ],
    ids=str,
)
def test_labels_of_any_kind_come_back(names, tmp_path):
    X, codes = draw(len(names))
    model = Classifier().fit(X, names[codes])
    np.testing.assert_array_equal(model.classes_, np.unique(names))
    predicted = model.predict(X)
    assert predicted.dtype == model.classes_.dtype
    assert set(predicted) <= set(names)
    assert (predicted == names[codes]).mean() > 0.5
    order = np.argsort(names)
    plain = Classifier().fit(X, np.argsort(order)[codes])
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-10)
    np.testing.assert_allclose(model.log_prob(X, names[codes]), plain.log_prob(X, np.argsort(order)[codes]), rtol=1e-10)
    assert set(model.sample(X, 3).ravel()) <= set(names)
    model.save(tmp_path / "labels.likely")
    loaded = likely.load(tmp_path / "labels.likely")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), predicted)


@pytest.mark.parametrize(
    "model",
    [
        Classifier(),
        Classifier(Categorical()),
        Classifier(Ordinal()),
        Classifier(network=MLP((8,)), inference=QUICK, random_state=0),
        Classifier(network=MLP((8,)), inference=Ensemble(3, by=QUICK), random_state=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("classes", [2, 4])
def test_the_verbs_agree_with_one_distribution(model, classes):
    X, y = draw(classes)
    model.fit(X, y)
    chance = model.predict_proba(X)
    assert chance.shape == (300, classes)
    np.testing.assert_allclose(chance.sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(X), chance.argmax(1))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), chance, rtol=1e-4, atol=1e-7)
    forecast = model.predict_dist(X)
    log_prob = model.log_prob(X, y)
    np.testing.assert_allclose(log_prob, forecast.log_prob(torch.tensor(y, dtype=model.posterior_.dtype)), rtol=1e-5)
    np.testing.assert_allclose(log_prob, model.predict_log_proba(X)[np.arange(300), y], rtol=1e-4, atol=1e-6)
    assert model.score(X, y) == pytest.approx(accuracy_score(y, model.predict(X)))


def test_samples_have_the_frequencies_of_the_probabilities(seed):
    """40,000 draws for 5 rows and 4 classes: 5 standard errors, a false alarm has probability below 2e-5."""
    X, y = draw(4)
    model = Classifier().fit(X, y)
    draws = model.sample(X[:5], n=40_000, random_state=seed)
    chance = model.predict_proba(X[:5])
    frequency = np.stack([(draws == label).mean(0) for label in range(4)], 1)
    assert (np.abs(frequency - chance) < 5 * np.sqrt(chance * (1 - chance) / 40_000)).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_at_the_optimum_residuals_are_orthogonal_to_inputs(classes):
    """∇ −log p = Xᵀ(P − Y) for the softmax, with Y the labels as unit vectors: 0 at the optimum."""
    X, y = draw(classes, seed=1)
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(y))
    model = Classifier().fit(X, y, sample_weight=weight)
    residual = weight[:, None] * (model.predict_proba(X) - np.eye(classes)[y])
    np.testing.assert_allclose(np.column_stack([X, np.ones(len(X))]).T @ residual, 0, atol=1e-7)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_agree_with_scikit_learn(classes):
    X, y = draw(classes, seed=2)
    ours = Classifier(Categorical(), prior=Normal(0.7)).fit(X, y)
    theirs = LogisticRegression(C=0.49, tol=1e-10, max_iter=2000).fit(X, y)
    if classes == 2:  # scikit-learn penalises one weight vector, softmax the two halves of it
        ours = Classifier(prior=Normal(0.7)).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("inference", ["auto", Ensemble(2, by=QUICK)], ids=["newton", "ensemble"])
@pytest.mark.parametrize("classes", [2, 3])
def test_logits_of_ten_thousand_are_answered_exactly(classes, inference):
    """Rows so far out that logits reach 1e4 and beyond: log-probabilities are those of the logits, and finite."""
    X, y = draw(classes, seed=3)
    model = Classifier(inference=inference, random_state=0).fit(X, y)
    far = X[:20] * 1e4
    eta = model.posterior_.eta(torch.tensor(far)).double().numpy()
    assert np.abs(eta).max() > 1e4
    log_proba = log_expit(np.concatenate([-eta, eta], -1)) if classes == 2 else log_softmax(eta, axis=-1)
    expected = np.logaddexp.reduce(log_proba, axis=0) - np.log(len(log_proba))
    np.testing.assert_allclose(model.predict_log_proba(far), expected, rtol=1e-5, atol=1e-6)
    for label in range(classes):
        scores = model.log_prob(far, np.full(20, label))
        np.testing.assert_allclose(scores, expected[:, label], rtol=1e-5, atol=1e-6)
    chance = model.predict_proba(far)
    assert np.isfinite(chance).all()
    np.testing.assert_allclose(chance.sum(1), 1, rtol=1e-6)


def test_two_classes_are_logistic_and_more_are_softmax():
    X, y = draw(3)
    assert isinstance(Classifier().fit(X, y).predict_dist(X), torch.distributions.Categorical)
    assert isinstance(Classifier().fit(X, y > 0).predict_dist(X), torch.distributions.Categorical)
    assert isinstance(Classifier(Bernoulli()).fit(X, y > 0).predict_dist(X), torch.distributions.Bernoulli)


@pytest.mark.parametrize("missing", [-1, np.nan, None])
def test_a_missing_label_is_a_row_left_out(missing):
    X, y = draw(3)
    gaps = y.astype(object if missing is None else float)
    gaps[::3] = missing
    kept = np.arange(len(y)) % 3 != 0
    model, alone = Classifier(missing_label=-1).fit(X, gaps), Classifier().fit(X[kept], y[kept])
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), rtol=1e-7)
    assert (model.log_prob(X, gaps)[::3] == 0).all()
    assert model.score(X, gaps) == alone.score(X[kept], y[kept])
    one = gaps[:2].copy()  # a single label beside the missing one
    assert model.log_prob(X[:2], one)[0] == 0
    assert model.log_prob(X[:2], one)[1] < 0


def test_no_label_is_dropped_unasked():
    """−1, 0, 1 are three classes, with the fit of any other three names."""
    X, y = draw(3)
    model, plain = Classifier().fit(X, y - 1), Classifier().fit(X, y)
    assert model.classes_.tolist() == [-1, 0, 1]
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-10)
    assert (model.log_prob(X, y - 1) < 0).all()
    assert Classifier().missing_label is None


def test_score_weights_rows_and_counts_unknown_labels_as_wrong():
    X, y = draw(3)
    weight = np.random.default_rng(0).uniform(size=len(y))
    model = Classifier().fit(X, y)
    assert model.score(X, y, weight) == pytest.approx(accuracy_score(y, model.predict(X), sample_weight=weight))
    assert model.score(X, np.full(len(y), 7)) == 0
    with pytest.raises(DataError, match="y has no label to score"):
        model.score(X, np.full(len(y), np.nan))


@pytest.mark.parametrize(
    "likelihood", [Bernoulli(), Categorical(classes=2), Categorical(classes=4), Ordinal(classes=2)]
)
def test_a_likelihood_of_another_number_of_classes_is_refused(likelihood):
    X, y = draw(3)
    with pytest.raises(
        DataError, match=r"y has 3 classes \(0, 1, 2\), which likelihood=.* does not describe"
    ) as caught:
        Classifier(likelihood).fit(X, y)
    assert repr(likelihood) in str(caught.value)
    assert 'likelihood="auto"' in str(caught.value)


def test_numbers_are_not_for_a_classifier():
    X, y = draw(2)
    with pytest.raises(SpecError, match=r"likelihood=Poisson\(\) describes numbers, not classes; use Regressor"):
        Classifier("poisson").fit(X, y)
    assert not hasattr(Classifier(), "predict_interval")


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.bool, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(
    "model",
    [
        Classifier(),
        Classifier(Bernoulli()),
        Classifier(Categorical()),
        Classifier(Ordinal()),
        Classifier(network=MLP((8,)), inference=Ensemble(3, by=QUICK), random_state=0),
        GaussianProcess(likelihood=Bernoulli(), learn=False),
        NaiveBayes(),
    ],
    ids=str,
)
def test_the_distribution_of_labels_takes_labels_of_any_kind(model, kind):
    X, y = draw(2)
    distribution = model.fit(X, y).predict_dist(X)
    codes = torch.as_tensor(y)
    expected = np.log(model.predict_proba(X)[np.arange(len(y)), y])
    np.testing.assert_allclose(distribution.log_prob(codes.to(kind)).double().numpy(), expected, rtol=1e-4, atol=1e-5)
    wide = distribution.expand((2, len(y)))
    np.testing.assert_allclose(wide.log_prob(codes.to(kind))[1].double().numpy(), expected, rtol=1e-4, atol=1e-5)
