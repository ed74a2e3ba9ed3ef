"""Models that are attacked through the function of the rows that they predict by."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from likely import GaussianProcess, KernelRidge, NaiveBayes, Perceptron, Regressor, SupportVector
from likely.core.errors import DataError, SpecError
from likely.evaluate import robustness
from likely.kernels import RBF, Constant, Matern
from likely.kernels import Linear as LinearKernel
from likely.likelihoods import Bernoulli, Normal, Poisson
from likely.models.kernel.votes import decision
from likely.robust import FGSM, PGD, CarliniWagner, DeepFool, Linear, attack
from likely.robust.victims import victim_of

NORMS = (1, 2, math.inf)
LABELS = {
    "naive Bayes": NaiveBayes(),
    "support vectors": SupportVector(RBF(3.0), probability=False),
    "support vectors without a derivative at rows": SupportVector(Matern(3.0, 0.5), probability=False),
    "support vectors with probabilities": SupportVector("linear", random_state=0),
    "process": GaussianProcess(RBF(3.0), "categorical", learn=False),
}
PAIR = {
    "perceptron": Perceptron(),
    "two classes of support vectors": SupportVector(RBF(3.0), probability=False),
    "binary process": GaussianProcess(RBF(3.0), Bernoulli(), learn=False),
}
NUMBERS = {
    "kernel ridge": KernelRidge(RBF(3.0)),
    "support vector regression": SupportVector(RBF(3.0), epsilon=0.1),
    "process of numbers": GaussianProcess(RBF(3.0), Normal(0.1), learn=False),
    "process of counts": GaussianProcess(RBF(3.0), Poisson(), learn=False),
}


@pytest.fixture(params=[*LABELS, *PAIR, *NUMBERS])
def task(request, clouds):
    """A fitted model, rows, and their targets; the threshold of numbers."""
    X, y = clouds
    if request.param in NUMBERS:
        target = np.abs(np.round(X[:, 0] + X[:, 1]))
        return NUMBERS[request.param].fit(X, target), X, target, 0.5
    kept = np.full(len(y), True) if request.param in LABELS else y != "c"
    return (LABELS | PAIR)[request.param].fit(X[kept], y[kept]), X[kept], y[kept], None


def around(X, count, seed=0):
    """Rows near X and far from it."""
    rng = np.random.default_rng(seed)
    return X[rng.integers(0, len(X), count)] + rng.normal(size=(count, 1)) * rng.normal(size=(count, X.shape[1]))


def test_a_margin_is_above_0_where_the_model_errs(task):
    model, X, y, threshold = task
    rows = around(X, 400)
    targets = np.resize(y, len(rows))
    victim = victim_of(model, threshold)
    x = victim.read(rows)
    margin = victim.evaluate(x, victim.targets(x, rows, targets))[1].numpy()
    answers = model.predict(rows)
    wrong = answers != targets if threshold is None else np.abs(answers - targets) > threshold
    clear = np.abs(margin) > 1e-9
    assert clear.mean() > 0.95
    np.testing.assert_array_equal((margin > 0)[clear], wrong[clear])


def test_gradients_are_those_of_differences_also_at_the_rows_of_the_fit(task):
    model, X, y, threshold = task
    victim = victim_of(model, threshold)
    rows = np.vstack([X[:10], around(X, 10)])
    x = victim.read(rows)
    targets = victim.targets(x, rows, np.resize(y, len(rows)))
    gradient = victim.follow(x, targets)[2]
    assert bool(gradient.isfinite().all())
    step = 1e-6
    for column in range(X.shape[1]):
        ends = torch.zeros_like(x)
        ends[:, column] = step
        above, below = (victim.evaluate(x + side * ends, targets)[0] for side in (1, -1))
        # at rows of the fit a Matérn kernel of order ½ has no derivative
        torch.testing.assert_close((above - below)[10:] / (2 * step), gradient[10:, column], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("norm", NORMS)
def test_changes_are_in_ball_and_range_and_pgd_is_no_weaker_than_fgsm(task, norm):
    model, X, y, threshold = task
    radius, bounds = {1: 1.5, 2: 1.0, math.inf: 0.6}[norm], (X.min(0), X.max(0))
    rates = []
    for method in (FGSM(radius, norm), PGD(radius, norm, steps=6), PGD(radius, norm, steps=6, restarts=2)):
        found = attack(model, X, y, method, bounds=bounds, threshold=threshold, random_state=0)
        assert (np.linalg.norm(found.perturbed - X, norm, axis=1) <= radius * (1 + 1e-9)).all()
        assert ((found.perturbed >= bounds[0]) & (found.perturbed <= bounds[1])).all()
        answers = model.predict(found.perturbed)
        wrong = answers != y if threshold is None else np.abs(answers - y) > threshold
        np.testing.assert_array_equal(found.success, wrong)
        rates.append(found.rate)
    assert 0 < rates[0] <= rates[1] <= rates[2]


# --- closed forms -----------------------------------------------------------------------------------------------------
def hyperplanes(clouds):
    """Linear models of every kind: the model, its rows, how far each is from an error, and the coefficients."""
    X, y = clouds
    kept = y != "c"
    rows, labels, numbers = X[kept], y[kept], X[kept][:, 0] - X[kept][:, 1]
    for model in (SupportVector("linear", probability=False), Perceptron()):
        model.fit(rows, labels)
        values = model.decision_function(rows)
        coefficients = model.coef_[0] if isinstance(model, Perceptron) else model.dual_coef_[0] @ model.support_vectors_
        wrong = (values > 0) != (labels == "b")
        yield model, rows, labels, None, np.where(wrong, 0.0, np.abs(values)), coefficients
    kernel = LinearKernel(2.0) + Constant(3.0)
    ridge = KernelRidge(kernel).fit(rows, numbers)
    tube = SupportVector("linear", epsilon=0.1).fit(rows, numbers)
    process = GaussianProcess(kernel, Normal(0.5), learn=False).fit(rows, numbers)
    for model in (ridge, tube, process):
        coefficients = model.predict(np.eye(4)) - model.predict(np.zeros((4, 4)))
        error = np.abs(model.predict(rows) - numbers)
        yield model, rows, numbers, 2.0, np.maximum(2.0 - error, 0), coefficients


@pytest.mark.parametrize("norm", [1, 1.5, 2, math.inf])
def test_a_linear_model_needs_its_margin_over_the_dual_norm(clouds, norm):
    q = {1: math.inf, math.inf: 1.0}.get(norm) or norm / (norm - 1)
    for model, X, y, threshold, margin, coefficients in hyperplanes(clouds):
        distance = margin / np.linalg.norm(coefficients, q)
        for method in (Linear(norm=norm, overshoot=1e-6), DeepFool(norm, overshoot=1e-6)):
            found = attack(model, X, y, method, threshold=threshold)
            assert found.success.all()
            sizes = np.linalg.norm(found.perturbed - X, norm, axis=1)
            np.testing.assert_allclose(sizes, (1 + 1e-6) * distance, rtol=1e-6, atol=1e-9)


def test_a_linear_kernel_is_attacked_as_the_regression_that_it_is(clouds):
    """Ridge regression in its dual and in its primal are one model, so that the exact attack moves rows alike."""
    X, y = clouds[0], clouds[0][:, 0] - clouds[0][:, 2]
    dual = KernelRidge("linear", alpha=1.0).fit(X, y)
    primal = Regressor(prior="normal(1.0)", likelihood=Normal(1.0), network="linear(bias=false)").fit(X, y)
    for method in (Linear(0.3, norm=2), Linear(0.3, norm="inf")):
        own, other = (attack(model, X, y, method, threshold=0.5).perturbed for model in (dual, primal))
        np.testing.assert_allclose(own, other, rtol=1e-6, atol=1e-6)


def test_naive_bayes_with_equal_variances_is_a_linear_classifier():
    rng = np.random.default_rng(0)
    spread, shift = rng.normal(size=(40, 3)) * [1.0, 2.0, 0.5], np.array([2.0, 1.0, -0.5])
    X, y = np.vstack([spread, spread + shift]), np.repeat(["a", "b"], 40)
    model = NaiveBayes().fit(X, y)
    coefficients = shift / spread.var(0)
    logit = (X - (spread.mean(0) + shift / 2)) @ coefficients
    distance = np.where((logit > 0) == (y == "b"), np.abs(logit), 0) / np.linalg.norm(coefficients)
    found = attack(model, X, y, DeepFool(overshoot=1e-6))
    assert found.success.all()
    np.testing.assert_allclose(found.l2, distance, rtol=1e-4, atol=1e-9)


def test_more_than_two_classes_of_pairs_have_no_closed_form(clouds):
    model = SupportVector("linear", probability=False).fit(*clouds)
    with pytest.raises(SpecError, match="Linear is exact for one linear model"):
        attack(model, *clouds, Linear())


def test_small_changes_fool_votes(clouds):
    """DeepFool goes to the nearest rival, and on to the nearest vote where one is not enough."""
    X, y = clouds
    model = SupportVector("linear", probability=False).fit(X, y)
    quick, thorough = attack(model, X, y, DeepFool()), attack(model, X, y, CarliniWagner(steps=60, searches=5))
    assert quick.success.all()
    assert thorough.success.all()
    assert quick.l2.mean() < 1.1 * thorough.l2.mean()


def test_a_cycle_of_votes_is_left_by_the_nearest_vote():
    """0 beats 1, 1 beats 2, 2 beats 0: each has one vote, and what is clearest wins."""
    model = SupportVector("linear", probability=False).fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    victim = victim_of(model)
    pairs = torch.tensor([[-1.0, 0.5, -0.2], [-1.0, -1.0, -0.1], [2.0, 1.0, -0.3]], dtype=torch.float64)
    answers = decision(pairs, 3).argmax(1)
    assert answers.tolist() == [0, 0, 1]
    for label in range(3):
        margins = victim.margins_of(pairs, torch.full((3,), label))
        assert ((margins > 0).any(1) == (answers != label)).all()
    assert victim.margins_of(pairs, answers)[0].tolist() == [-math.inf, -1.0, -0.2]  # 2 has won its duel: 1 is next


# --- evaluation -------------------------------------------------------------------------------------------------------
def test_robustness_of_scored_models_falls_with_the_radius(clouds):
    X, y = clouds
    for model in (NaiveBayes(), SupportVector("linear", probability=False)):
        curve = robustness(model.fit(X, y), X, y, PGD(0.1, steps=5), radii=[0.2, 0.6, 2.0], random_state=0)
        assert curve.clean == pytest.approx(model.score(X, y))
        assert all(later <= earlier for earlier, later in itertools.pairwise([curve.clean, *curve.accuracy]))
        assert curve.accuracy[-1] < 0.5


# --- words ------------------------------------------------------------------------------------------------------------
def test_what_cannot_be_attacked_is_refused_in_words(clouds):
    X, y = clouds
    texts = NaiveBayes().fit(["good day", "bad day", "good night", "bad night"], ["a", "b", "a", "b"])
    with pytest.raises(DataError, match="The NaiveBayes was fitted on texts, which have no small changes"):
        attack(texts, ["good day"], ["a"], FGSM(0.1))
    gaps = X.copy()
    gaps[3, 1] = np.nan
    with pytest.raises(DataError, match="X contains NaN at row 3, column 1"):
        attack(NaiveBayes().fit(X, y), gaps, y, FGSM(0.1))
    with pytest.raises(DataError, match="y has no label at row 1; an attack needs one for each row"):
        attack(NaiveBayes().fit(X, y), X[:3], ["a", None, "b"], FGSM(0.1))
    ridge = KernelRidge().fit(X, X[:, 0])
    with pytest.raises(SpecError, match="A KernelRidge does not say how far off its predictions may be; give a thresh"):
        attack(ridge, X, X[:, 0], FGSM(0.1))
    with pytest.raises(DataError, match=r"y has shape \(90, 2\); the model answers 1 numbers for each row"):
        attack(ridge, X, X[:, :2], FGSM(0.1), threshold=1.0)
    with pytest.raises(SpecError, match=r"threshold=1\.0 is for regressors"):
        attack(NaiveBayes().fit(X, y), X, y, FGSM(0.1), threshold=1.0)


def test_several_numbers_are_attacked_together(clouds):
    X = clouds[0]
    model = KernelRidge("linear").fit(X, X[:, :2])
    found = attack(model, X, None, Linear(norm=2, overshoot=1e-6), threshold=[1.0, 3.0])
    np.testing.assert_allclose(np.abs(found.predicted - model.predict(X)).max(0)[0], 1.0, rtol=1e-5)
    assert found.success.all()


def test_a_machine_knows_the_range_of_the_rows_that_it_keeps(clouds):
    X, y = clouds
    with pytest.raises(DataError, match="radius=80 is beyond the range of X"):
        attack(SupportVector("linear", probability=False).fit(X, y), X[:1], y[:1], FGSM(80.0))
