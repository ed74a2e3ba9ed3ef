from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.preprocessing import scale
from sklearn.svm import SVC, SVR

import likely
from likely.core.errors import DataError, TrainingError
from likely.core.spec import registered
from likely.kernels import RBF, Deep, Kernel, Linear, Matern, Polynomial, White
from likely.models.kernel.support_vector import SupportVector
from likely.networks import MLP

KERNELS = {
    "rbf": (RBF(1.5), {"kernel": "rbf", "gamma": 1 / (2 * 1.5**2)}),
    "linear": (Linear(), {"kernel": "linear"}),
    "poly": (Polynomial(2, 1.0), {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}),
}
HARD = float("inf")


def two_classes(rows=120, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 - 1 + noise * rng.normal(size=rows) > 0, "in", "out")


def numbers(rows=100, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=rows)


def separable(rows=40, gap=0.7, seed=0):
    rng = np.random.default_rng(seed)
    plane = rng.normal(size=2)
    plane /= np.linalg.norm(plane)
    X = 2 * rng.normal(size=(rows, 2))
    side = np.where(X @ plane > 0.3, 1, -1)
    return X + gap * np.outer(side, plane), side


def plain(model):
    """f of the rows by its definition."""
    return lambda X: model.kernel_.matrix(X, model.support_vectors_).numpy() @ model.dual_coef_.T + model.intercept_


def rounding(model, X):
    """What libsvm can know of f: it keeps K in float32, of 24 bits, and f sums βᵢK over the support vectors."""
    K = model.kernel_.matrix(X).abs().max().item()
    return max(1e-6, 2 * 2.0**-24 * K * np.abs(model.dual_coef_).sum())


# --- against libsvm ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("name", KERNELS)
def test_decisions_between_two_classes_are_those_of_scikit_learn(name, C, weighted):
    X, y = two_classes()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    kernel, settings = KERNELS[name]
    ours = SupportVector(kernel, C, probability=False).fit(X, y, weight)
    theirs = SVC(C=C, tol=1e-10, **settings).fit(X, y, weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=rounding(ours, X))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y) == accuracy_score(y, theirs.predict(X))
    assert ours.kkt_residual_ <= 1e-6


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_decisions_between_several_classes_are_those_of_scikit_learn(name, data):
    X, y = data(return_X_y=True)
    X = scale(X)
    kernel, settings = KERNELS[name]
    ours = SupportVector(kernel, probability=False).fit(X, y)
    theirs = SVC(tol=1e-10, break_ties=True, **settings).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=rounding(ours, X))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.kkt_residual_ <= 1e-6
    np.testing.assert_array_equal(ours.n_support_, np.bincount(y[ours.support_]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("name", KERNELS)
def test_regression_is_that_of_scikit_learn(name, epsilon, weighted):
    X, y = numbers()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    kernel, settings = KERNELS[name]
    ours = SupportVector(kernel, 2.0, epsilon=epsilon).fit(X, y, weight)
    theirs = SVR(C=2.0, epsilon=epsilon, tol=1e-10, **settings).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=rounding(ours, X))
    assert ours.score(X, y) == pytest.approx(r2_score(y, ours.predict(X)), abs=1e-12)
    assert ours.kkt_residual_ <= 1e-6


@pytest.mark.parametrize("scaling", [1e-4, 1e6])
def test_numbers_in_other_units_have_the_same_solution(scaling):
    """y → s·y with ε → s·ε and C → s·C is f → s·f; libsvm alone would stop early, or never."""
    X, y = numbers()
    unit = SupportVector(RBF(), 2.0, epsilon=0.1).fit(X, y)
    other = SupportVector(RBF(), 2.0 * scaling, epsilon=0.1 * scaling).fit(X, scaling * y + 5 * scaling)
    np.testing.assert_allclose(other.predict(X), scaling * (unit.predict(X) + 5), rtol=1e-7)
    assert other.kkt_residual_ <= 1e-6


# --- the conditions of the optimum, by their definitions --------------------------------------------------------
@pytest.mark.parametrize("C", [0.05, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("kernel", [RBF(), Linear(), Polynomial(3), Matern(1.0, 0.5), Deep(MLP((8,)))], ids=repr)
def test_multipliers_of_classes_keep_the_conditions(kernel, C):
    """Σαy = 0, 0 ≤ α ≤ C, and y·f ≥ 1 at α = 0, = 1 in between, ≤ 1 at α = C: soft margins bound α on both sides."""
    X, y = two_classes()
    model = SupportVector(kernel, C, probability=False).fit(X, y)
    sign = np.where(y == model.classes_[1], 1.0, -1.0)
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[0] * sign[model.support_]
    assert abs(alpha @ sign) <= 1e-9 * max(alpha.sum(), 1)
    assert alpha.min() >= 0
    assert alpha.max() <= C
    confidence = sign * plain(model)(X)[:, 0]
    assert np.all(confidence[alpha == 0] >= 1 - 1e-4)
    assert np.all(confidence[alpha == C] <= 1 + 1e-4)
    np.testing.assert_allclose(confidence[(alpha > 0) & (alpha < C)], 1, atol=1e-4)
    assert model.kkt_residual_ <= 1e-6
    np.testing.assert_allclose(model.slack_, np.maximum(0, 1 - confidence)[model.support_], atol=1e-6)


@pytest.mark.parametrize("name", [n for n, c in registered(Kernel).items() if c.__module__.startswith("likely.")])
def test_any_kernel_can_be_used_and_saved(tmp_path, name):
    X, y = two_classes(40)
    kernel = registered(Kernel)[name].example()
    model = SupportVector(kernel, random_state=0).fit(X, y)
    assert model.kkt_residual_ <= 1e-6
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("kernel", [RBF(), Linear(), Polynomial(3)], ids=repr)
def test_multipliers_of_numbers_keep_the_conditions(kernel, epsilon, C):
    X, y = numbers()
    model = SupportVector(kernel, C, epsilon=epsilon).fit(X, y)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    assert np.abs(beta).max() <= C * (1 + 1e-12)
    error = y - plain(model)(X)[:, 0]
    bound = np.abs(beta) >= C * (1 - 1e-12)
    assert np.all(np.abs(error[beta == 0]) <= epsilon + 1e-4)
    assert np.all(np.sign(beta[bound]) * error[bound] >= epsilon - 1e-4)
    free = (beta != 0) & ~bound
    np.testing.assert_allclose(error[free], epsilon * np.sign(beta[free]), atol=1e-4)


def test_primal_and_dual_agree_in_value():
    """½‖w‖² + CΣξ = Σα − ½‖w‖²: no gap is left between the two sides of the saddle."""
    X, y = two_classes()
    model = SupportVector(RBF(), 3.0, probability=False).fit(X, y)
    square = (2 / model.margin_) ** 2
    np.testing.assert_allclose(0.5 * square + 3.0 * model.slack_.sum(), np.abs(model.dual_coef_).sum() - 0.5 * square)


@pytest.mark.parametrize("kernel", [RBF(0.5), RBF(5.0), Linear(), Polynomial(2), Matern()], ids=repr)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_real_data_is_solved_to_its_conditions(kernel, C):
    X, y = load_breast_cancer(return_X_y=True)
    model = SupportVector(kernel, C, probability=False).fit(scale(X), y)
    assert model.kkt_residual_ <= 1e-6


# --- the hard margin --------------------------------------------------------------------------------------------
def test_the_margin_is_twice_the_distance_to_the_nearest_row():
    """On three rows that can be drawn: (0, 0) against (2, 0) and (2, 2) is x = 1, with a street of width 2."""
    model = SupportVector(Linear(), HARD, probability=False).fit([[0, 0], [2, 0], [2, 2], [-3, 1]], [0, 1, 1, 0])
    assert model.margin_ == pytest.approx(2.0)
    np.testing.assert_allclose(model.dual_coef_ @ model.support_vectors_, [[1, 0]], atol=1e-9)
    assert model.intercept_[0] == pytest.approx(-1.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_hard_margin_is_the_widest_street(seed):
    """Its geometric width is 2·min y(w·x + b)/‖w‖, which no direction that a solver without duals finds exceeds."""
    X, y = separable(seed=seed)
    model = SupportVector("linear", HARD, probability=False).fit(X, y)
    w = (model.dual_coef_ @ model.support_vectors_)[0]
    distance = y * (X @ w + model.intercept_[0]) / np.linalg.norm(w)
    assert model.margin_ == pytest.approx(2 * distance.min(), rel=1e-6)
    assert model.margin_ == pytest.approx(2 / np.linalg.norm(w), rel=1e-9)
    assert np.allclose(model.slack_, 0, atol=1e-6)

    conditions = {"type": "ineq", "fun": lambda p: y * (X @ p[:2] + p[2]) - 1}
    start = np.append(5 * w, 5 * model.intercept_)
    primal = minimize(lambda p: 0.5 * p[:2] @ p[:2], start, constraints=conditions, options={"ftol": 1e-14})
    assert model.margin_ == pytest.approx(2 / np.linalg.norm(primal.x[:2]), rel=1e-5)


def test_the_margin_is_the_distance_between_the_hulls():
    X, y = separable(rows=20, seed=3)
    model = SupportVector(Linear(), HARD, probability=False).fit(X, y)
    first, second = X[y > 0], X[y < 0]

    def gap(p):
        return ((p[: len(first)] @ first - p[len(first) :] @ second) ** 2).sum()

    sums = [{"type": "eq", "fun": lambda p, s=s: p[s].sum() - 1} for s in (slice(len(first)), slice(len(first), None))]
    start = np.concatenate([np.full(len(hull), 1 / len(hull)) for hull in (first, second)])
    nearest = minimize(gap, start, constraints=sums, bounds=[(0, 1)] * len(X), options={"ftol": 1e-15, "maxiter": 1000})
    assert model.margin_ == pytest.approx(math.sqrt(nearest.fun), rel=1e-5)


def test_all_great_c_have_the_hard_margin_and_smaller_ones_a_wider_street():
    X, y = separable()
    hard = SupportVector(Linear(), HARD, probability=False).fit(X, y)
    largest = np.abs(hard.dual_coef_).max()
    soft = SupportVector(Linear(), 2 * largest, probability=False).fit(X, y)
    np.testing.assert_allclose(soft.decision_function(X), hard.decision_function(X), atol=1e-7)
    margins = [
        SupportVector(Linear(), share * largest, probability=False).fit(X, y).margin_ for share in (0.01, 0.1, 1.0)
    ]
    assert margins[0] > margins[1] > margins[2] * (1 - 1e-9)


def test_a_kernel_with_freedom_separates_anything_that_differs():
    X, y = two_classes(noise=2.0)
    model = SupportVector(RBF(0.3), HARD, probability=False).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.kkt_residual_ <= 1e-4


def test_a_hard_tube_holds_every_hyperparameter():
    X, y = numbers()
    model = SupportVector(RBF(0.5), HARD, epsilon=0.05).fit(X, y)
    assert np.abs(model.predict(X) - y).max() <= 0.05 + 1e-6
    through = SupportVector(RBF(0.5), HARD, epsilon=0.0).fit(X[:30], y[:30])
    np.testing.assert_allclose(through.predict(X[:30]), y[:30], atol=1e-6)


@pytest.mark.parametrize("rows", [30, 400])
def test_classes_that_cannot_be_separated_are_said_to_be_so(rows):
    X, y = two_classes(rows)
    with pytest.raises(TrainingError, match=r"C=inf .*classes 'in', 'out' cannot be separated by Linear\(\); give C"):
        SupportVector(Linear(), HARD, probability=False).fit(X, y)
    with pytest.raises(TrainingError, match="cannot be separated"):  # the same row in both classes
        SupportVector(RBF(), HARD, probability=False).fit([[0.0], [0.0], [1.0]], [0, 1, 1])
    with pytest.raises(TrainingError, match=r"C=inf .*no function of Linear\(\) is within epsilon=0.1 of every y"):
        SupportVector(Linear(), HARD, epsilon=0.1).fit(*numbers())


# --- invariances ------------------------------------------------------------------------------------------------
def test_only_support_vectors_matter():
    X, y = two_classes()
    model = SupportVector(RBF(), probability=False).fit(X, y)
    again = SupportVector(RBF(), probability=False).fit(X[model.support_], y[model.support_])
    assert len(model.support_) < len(y)
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-7)


def test_far_columns_change_the_intercept_alone():
    X, y = two_classes()
    near, far = (SupportVector(Linear(), probability=False).fit(rows, y) for rows in (X, X + 1e4))
    np.testing.assert_allclose(far.dual_coef_, near.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(far.decision_function(X + 1e4), near.decision_function(X), atol=1e-5)


def test_exchanged_labels_exchange_the_signs():
    X, y = two_classes()
    names = {"in": "z", "out": "a"}
    model = SupportVector(probability=False).fit(X, y)
    other = SupportVector(probability=False).fit(X, [names[label] for label in y])
    np.testing.assert_allclose(other.decision_function(X), -model.decision_function(X), atol=1e-7)


def test_weights_are_repeats_and_missing_labels_do_not_count():
    X, y = two_classes()
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = SupportVector(probability=False).fit(X, y, weight)
    repeated = SupportVector(probability=False).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-7)
    holes = np.where(weight == 0, None, y.astype(object))
    missing = SupportVector(probability=False).fit(X, holes)
    kept = SupportVector(probability=False).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(missing.decision_function(X), kept.decision_function(X), atol=1e-9)
    assert set(missing.support_) <= set(np.flatnonzero(weight))
    np.testing.assert_array_equal(X[missing.support_], missing.support_vectors_)
    assert missing.score(X, holes) == missing.score(X[weight > 0], y[weight > 0])


def test_a_class_without_weight_is_not_there():
    X, y = load_iris(return_X_y=True)
    model = SupportVector(probability=False).fit(X, y, (y != 1).astype(float))
    assert model.classes_.tolist() == [0, 2]


def test_missing_numbers_do_not_count():
    X, y = numbers()
    holes = np.where(np.arange(len(y)) % 4 == 0, np.nan, y)
    known = ~np.isnan(holes)
    model, alone = SupportVector(epsilon=0.1).fit(X, holes), SupportVector(epsilon=0.1).fit(X[known], y[known])
    np.testing.assert_allclose(model.predict(X), alone.predict(X), atol=1e-9)
    assert model.score(X, holes) == pytest.approx(alone.score(X[known], y[known]))


def test_white_noise_squares_the_slack():
    """K + vI is the dual of a penalty Σξ²/2v in place of CΣξ, so that nothing is bound and α = ξ/v."""
    X, y = two_classes()
    model = SupportVector(RBF() + White(0.5), HARD, probability=False).fit(X, y)
    sign = np.where(y == model.classes_[1], 1.0, -1.0)[model.support_]
    slack = 1 - sign * model.decision_function(X[model.support_])
    np.testing.assert_allclose(model.dual_coef_[0] * sign, slack / 0.5, atol=1e-5)


# --- several classes --------------------------------------------------------------------------------------------
def test_each_pair_of_classes_is_a_model_of_its_own():
    X, y = load_iris(return_X_y=True)
    model = SupportVector(RBF(), probability=False).fit(X, y)
    assert len(model.margin_) == model.dual_coef_.shape[0] == 3
    for pair, (i, j) in enumerate(combinations(range(3), 2)):
        rows = (y == i) | (y == j)
        alone = SupportVector(RBF(), probability=False).fit(X[rows], y[rows])
        np.testing.assert_allclose(plain(model)(X)[:, pair], alone.decision_function(X), atol=1e-7)
        assert model.margin_[pair] == pytest.approx(alone.margin_)


# --- probabilities ----------------------------------------------------------------------------------------------
def test_probabilities_are_those_of_a_known_logistic_problem(seed):
    """1,000 rows leave errors of 0.013 ± 0.005 on average, and of 0.012 in the mean of each fifth of the range.

    Six deviations over seeds are allowed: a false alarm in about 1 of 10⁶.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 2))
    truth = expit(2 * X[:, 0] - X[:, 1])
    y = (rng.random(1000) < truth).astype(int)
    model = SupportVector(Linear(), 0.1, random_state=seed).fit(X, y)
    new = rng.normal(size=(4000, 2))
    true = expit(2 * new[:, 0] - new[:, 1])
    probability = model.predict_proba(new)
    np.testing.assert_allclose(probability.sum(1), 1)
    assert np.abs(probability[:, 1] - true).mean() < 0.043
    for low in np.arange(0, 1, 0.2):  # of those given about p, about p are so
        inside = (probability[:, 1] >= low) & (probability[:, 1] < low + 0.2)
        assert abs(probability[inside, 1].mean() - true[inside].mean()) < 0.08
    assert model.predict_dist(new[:3]).probs.numpy() == pytest.approx(probability[:3])


def test_probabilities_of_several_classes_are_calibrated_and_sharp(seed):
    """A mixture whose posterior is known: the log loss of 800 rows is 0.034 ± 0.006 above the least there is.

    So 0.07 are 6 deviations over seeds: a false alarm in about 1 of 10⁶.
    """
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [1.5, 0], [0, 1.5], [2, 2]])
    y, new_y = rng.integers(0, 4, 800), rng.integers(0, 4, 4000)
    X, new = (centres[labels] + 0.8 * rng.normal(size=(len(labels), 2)) for labels in (y, new_y))
    model = SupportVector(RBF(1.5), random_state=seed).fit(X, y)
    square = ((new[:, None] - centres) ** 2).sum(-1) / 0.8**2
    truth = np.exp(-0.5 * square) / np.exp(-0.5 * square).sum(1, keepdims=True)
    probability = model.predict_proba(new)
    np.testing.assert_allclose(probability.sum(1), 1)
    assert log_loss(new_y, probability) < log_loss(new_y, truth) + 0.07
    assert (probability.argmax(1) == model.predict(new)).mean() > 0.95


def test_probabilities_depend_on_the_seed_alone():
    X, y = two_classes()
    first, second, other = (SupportVector(random_state=seed).fit(X, y).predict_proba(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_probabilities_that_are_not_there_say_why():
    X, y = two_classes()
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        SupportVector(probability=False).fit(X, y).predict_proba(X)
    assert not hasattr(SupportVector(epsilon=0.1), "decision_function")
    late = SupportVector(probability=False).fit(X, y).set_params(probability=True)
    with pytest.raises(DataError, match="fitted with probability=False; fit it again"):
        late.predict_proba(X)
    single = SupportVector().fit([[0.0], [1.0], [2.0]], [0, 1, 1])
    with pytest.raises(DataError, match="A class had a single row in fit"):
        single.predict_proba([[0.0]])
