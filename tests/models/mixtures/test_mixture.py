from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import likely
from likely import Mixture
from likely.core.errors import ConvergenceWarning, DataError, LikelyWarning, SpecError
from likely.core.spec import registered
from likely.inference import EM, elbo
from likely.inference.latent.density import fit_latent
from likely.likelihoods import (
    Bernoulli,
    Categorical,
    Gamma,
    Laplace,
    Likelihood,
    MultivariateNormal,
    Normal,
    Poisson,
    Product,
    StudentT,
)
from likely.models.mixtures.components import Components

SAMPLES = 120

EVERY = [cls.example() for cls in registered(Likelihood).values()]


def drawn(likelihood, seed=0, rows=SAMPLES):
    """Rows of two groups of this likelihood, as an array (n, columns)."""
    size = likelihood.size(likelihood.example_target())
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        eta = torch.randn(2, size, dtype=torch.float64)
        y = likelihood.distribution(eta[torch.arange(rows) % 2]).sample().double()
    return y.reshape(rows, -1).numpy()


def steps(likelihood, X, components=2, **more):
    """A mixture bound to rows, and the parameters of its first guess."""
    model = Mixture(likelihood, components, **more)
    bound = model._bound(torch.from_numpy(X), None)
    return bound, bound.start([0])


def quietly(model, X, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        return model.fit(X, **more)


# --- EM ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("likelihood", EVERY, ids=repr)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_the_likelihood_never_falls(likelihood, missing):
    X = drawn(likelihood)
    if missing:
        X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    model = quietly(Mixture(likelihood, 2, EM(max_iter=15, tol=0.0, starts=2), "random", random_state=1), X)
    assert np.isfinite(model.history_).all()
    assert (np.diff(model.history_) >= -1e-9 * np.abs(model.history_[:-1])).all()


@pytest.mark.parametrize("likelihood", [Normal(), Poisson(), Laplace(), MultivariateNormal()], ids=repr)
def test_elbo_and_kl_add_up_to_the_log_likelihood_at_each_step(likelihood):
    """log p(x) = ELBO(q) + KL(q ‖ p(k | x)) for any q, here the posterior of the step before."""
    X = drawn(likelihood)
    bound, params = steps(likelihood, X, smoothing=0.0)
    before = None
    for _ in range(4):
        log_joint = (bound.emission.log_prob(params, bound.x) + params["weights"].log())[:, 0]
        evidence = log_joint.logsumexp(-1)
        log_posterior = log_joint - evidence.unsqueeze(-1)
        posterior = log_posterior.exp()
        q = posterior if before is None else before
        kl = torch.where(q > 0, q * (q.log() - log_posterior), 0.0).sum(-1)
        torch.testing.assert_close(elbo(log_joint, q) + kl, evidence, rtol=1e-10, atol=1e-10)
        assert (kl >= -1e-12).all()
        statistics, value = bound.expect(params)
        torch.testing.assert_close(value, evidence.sum().reshape(1), rtol=1e-12, atol=1e-9)
        params, before = bound.maximise(params, statistics), posterior


def test_blocks_do_not_change_the_sums(monkeypatch):
    X = np.random.default_rng(0).normal(size=(700, 3))
    bound, params = steps(StudentT(), X, 3)
    whole, value = bound.expect(params)
    monkeypatch.setattr("likely.models.mixtures.components.blocks", lambda rows, width: [rows])
    once, same = bound.expect(params)
    torch.testing.assert_close(value, same, rtol=1e-12, atol=0)
    for name in whole:
        torch.testing.assert_close(whole[name], once[name], rtol=1e-10, atol=1e-10)


def test_several_starts_give_the_best_of_them():
    X = np.random.default_rng(0).normal(size=(200, 2))
    seeds = []

    class Spy(Components):
        def start(self, given):
            seeds.extend(given)
            return super().start(given)

    model = Mixture(Normal(), 4, EM(max_iter=30, tol=0.0, starts=5), "random", random_state=3)
    bound = model._bound(torch.from_numpy(X), None)
    bound.__class__ = Spy
    fit = fit_latent(model.inference, bound, "auto", name="EM", random_state=3)
    alone = []
    for seed in seeds[:5]:
        params = Components.start(bound, [seed])
        for _ in range(fit.n_iter):
            params = bound.maximise(params, bound.expect(params)[0])
        alone.append(float(bound.expect(params)[1]))
    assert len(set(np.round(alone, 6))) > 1
    np.testing.assert_allclose(fit.finals, alone, rtol=1e-9)
    np.testing.assert_allclose(float(fit.trace[-1]), max(alone), rtol=1e-9)


# --- reduction to simpler models ----------------------------------------------------------------------------------
@pytest.mark.parametrize("likelihood", EVERY, ids=repr)
def test_one_component_is_the_weighted_estimate(likelihood):
    X = drawn(likelihood)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = quietly(Mixture(likelihood, 1, EM(max_iter=3), smoothing=0.0), X, sample_weight=weight)
    vector = likelihood.event_dim and not isinstance(likelihood, Product)
    targets = torch.from_numpy(X if likelihood.event_dim else X[:, 0])
    expected = likelihood.weighted_mle(targets, torch.from_numpy(weight))
    own = likelihood.log_prob(torch.from_numpy(model.eta_[0]), targets) if vector else model.log_prob(X)
    np.testing.assert_allclose(model.log_prob(X), likelihood.log_prob(expected, targets), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.log_prob(X), own, rtol=1e-9, atol=1e-9)


def test_poisson_mixture_agrees_with_the_equations_of_em():
    X = np.random.default_rng(0).poisson(np.where(np.arange(300) % 3 == 0, 2.0, 11.0)).astype(float)
    model = Mixture(Poisson(), 2, EM(max_iter=500, tol=1e-13), smoothing=0.0, random_state=0).fit(X[:, None])
    weight, rate = model.weights_, np.exp(model.eta_[:, 0])
    joint = weight * np.exp(-rate) * rate ** X[:, None]  # without x!, which cancels
    share = joint / joint.sum(1, keepdims=True)
    np.testing.assert_allclose(share.mean(0), weight, atol=1e-7)
    np.testing.assert_allclose((share * X[:, None]).sum(0) / share.sum(0), rate, rtol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X[:, None]), share, atol=1e-6)


def test_weights_are_repeated_rows():
    X = np.random.default_rng(0).normal(size=(60, 2)) + 4 * (np.arange(60) % 2)[:, None]
    weight = np.random.default_rng(1).integers(0, 4, 60)
    emission = EM(max_iter=300, tol=1e-13)
    weighted = Mixture(Normal(), 2, emission, random_state=0).fit(X, sample_weight=weight)
    repeated = Mixture(Normal(), 2, emission, random_state=0).fit(np.repeat(X, weight, axis=0))
    order = [np.argsort(model.eta_[:, 0]) for model in (weighted, repeated)]
    np.testing.assert_allclose(weighted.weights_[order[0]], repeated.weights_[order[1]], atol=1e-7)
    np.testing.assert_allclose(weighted.eta_[order[0]], repeated.eta_[order[1]], atol=1e-6)
    np.testing.assert_allclose(weighted.log_likelihood_, repeated.log_likelihood_, rtol=1e-9)
    np.testing.assert_allclose(weighted.log_likelihood_, weight @ weighted.log_prob(X), rtol=1e-9)


def test_a_list_a_product_and_columns_one_by_one_are_the_same():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=80) + 5 * (np.arange(80) % 2), rng.poisson(3 + 6 * (np.arange(80) % 2))])
    kinds = [Normal(), Poisson()]
    first = Mixture(kinds, 2, random_state=0).fit(X)
    second = Mixture(Product({"a": Normal(), "b": Poisson()}), 2, random_state=0).fit(X)
    third = Mixture(["normal", "poisson()"], 2, random_state=0).fit(X)
    for other in (second, third):
        np.testing.assert_array_equal(first.eta_, other.eta_)
    by_hand = sum(
        (size.log_prob(torch.from_numpy(X[:, 0])) + count.log_prob(torch.from_numpy(X[:, 1]))).exp().numpy() * weight
        for (size, count), weight in zip(
            (component.values() for component in first.distributions_), first.weights_, strict=True
        )
    )
    np.testing.assert_allclose(first.log_prob(X), np.log(by_hand), rtol=1e-9)


# --- missing values -----------------------------------------------------------------------------------------------
def test_a_missing_value_is_one_that_does_not_count():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=100), rng.poisson(4, size=100).astype(float)])
    X[rng.random(100) < 0.3, 0] = np.nan
    X[rng.random(100) < 0.3, 1] = np.nan
    model = Mixture([Normal(), Poisson()], 1, smoothing=0.0).fit(X)
    distribution = model.distributions_[0]
    known = [column[~np.isnan(column)] for column in X.T]
    np.testing.assert_allclose(distribution["0"].loc, known[0].mean(), rtol=1e-9)
    np.testing.assert_allclose(distribution["0"].scale, known[0].std(), rtol=1e-9)
    np.testing.assert_allclose(distribution["1"].rate, known[1].mean(), rtol=1e-9)


def test_a_row_with_all_values_missing_has_the_weights_as_its_posterior():
    X = np.random.default_rng(0).normal(size=(50, 2)) + 3 * (np.arange(50) % 2)[:, None]
    model = Mixture(Normal(), 2, random_state=0).fit(X)
    empty = np.full((1, 2), np.nan)
    np.testing.assert_allclose(model.predict_proba(empty)[0], model.weights_, rtol=1e-12)
    np.testing.assert_allclose(model.log_prob(empty), 0, atol=1e-12)


# --- answers ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(5)
    X = rng.poisson(np.where(rng.random((400, 1)) < 0.3, [[1.0, 8.0]], [[9.0, 2.0]])).astype(float)
    return X, Mixture(Poisson(), 2, EM(max_iter=300, tol=1e-9), random_state=0).fit(X)


def test_answers_agree_with_each_other(counts):
    X, model = counts
    share = model.predict_proba(X)
    np.testing.assert_allclose(share.sum(1), 1, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), share.argmax(1))
    np.testing.assert_allclose(model.posterior(X).probs, share, rtol=1e-12)
    np.testing.assert_allclose(model.log_prob(X), model.distribution().log_prob(torch.from_numpy(X)), rtol=1e-10)
    np.testing.assert_allclose(model.score(X), model.log_prob(X).mean(), rtol=1e-12)
    np.testing.assert_allclose(model.log_likelihood_, model.log_prob(X).sum(), rtol=1e-12)
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.predict(X))


def test_criteria_count_free_parameters(counts):
    X, model = counts
    total = model.log_prob(X).sum()
    assert model.n_parameters_ == 2 * 2 + 1
    np.testing.assert_allclose(model.aic(X), -2 * total + 2 * 5, rtol=1e-12)
    np.testing.assert_allclose(model.bic(X), -2 * total + np.log(400) * 5, rtol=1e-12)
    labels = np.random.default_rng(0).integers(3, size=(60, 1))
    assert quietly(Mixture(Categorical(), 2, random_state=0), labels).n_parameters_ == 2 * 2 + 1
    vectors = np.random.default_rng(0).normal(size=(60, 3))
    assert quietly(Mixture(MultivariateNormal(), 2, random_state=0), vectors).n_parameters_ == 2 * 9 + 1


def test_samples_fitted_again_give_the_mixture_back(counts, seed):
    """20,000 rows: a rate of 9 has a standard error of 0.03, a weight of 0.004; the bounds are 6 of these."""
    _, model = counts
    X, component = model.sample(20_000, random_state=seed + 1, return_hidden=True)
    again = Mixture(Poisson(), 2, random_state=seed).fit(X)
    order, other = np.argsort(model.eta_[:, 0]), np.argsort(again.eta_[:, 0])
    np.testing.assert_allclose(np.exp(again.eta_[other]), np.exp(model.eta_[order]), atol=0.2)
    np.testing.assert_allclose(again.weights_[other], model.weights_[order], atol=0.025)
    np.testing.assert_allclose(np.bincount(component) / 20_000, model.weights_, atol=0.025)
    rows, labels = model.sample(20_000, random_state=seed + 1, return_hidden=True)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, component)


def test_mixed_kinds_recover_planted_groups(seed):
    """The groups' densities overlap in about 1 % of the rows: of 500, more than 25 wrong ones are far off."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=500)
    X = np.column_stack(
        [rng.gamma(2 + 8 * group), rng.random(500) < np.where(group, 0.9, 0.2), rng.poisson(2 + 6 * group)]
    )
    model = Mixture([Gamma(), Bernoulli(), Poisson()], 2, EM(max_iter=300), random_state=seed).fit(X)
    agree = (model.predict(X) == group).mean()
    assert max(agree, 1 - agree) > 0.95


def test_labels_are_no_distances():
    """Rows differ in one label only; as numbers the labels 0, 1, 2 would lie on a line."""
    X = np.repeat([[0.0], [1.0], [2.0]], 50, axis=0)
    model = quietly(Mixture(Categorical(), 3, random_state=0), X)
    assert len(set(model.predict([[0.0], [1.0], [2.0]]))) == 3


@pytest.mark.parametrize("kind", [Normal(), [Normal(), Categorical()], MultivariateNormal()], ids=str)
def test_saved_and_loaded_it_is_the_same(tmp_path, kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=40), "colour": rng.integers(3, size=40).astype(float)})
    model = quietly(Mixture(kind, 2, random_state=0), X)
    model.save(tmp_path / "mixture.likely")
    loaded = likely.load(tmp_path / "mixture.likely")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.sample(5, random_state=0), model.sample(5, random_state=0))
    np.testing.assert_array_equal(loaded.history_, model.history_)
    assert loaded.bic(X) == model.bic(X)
    for name in ("n_iter_", "converged_", "log_likelihood_", "held_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert list(loaded.feature_names_in_) == ["size", "colour"]


# --- what has to be held up ---------------------------------------------------------------------------------------
def test_a_component_that_shrinks_to_a_point_is_held_and_reported():
    X = np.concatenate([np.zeros(20), np.random.default_rng(0).normal(5, 1, 60)])[:, None]
    with pytest.warns(LikelyWarning, match=r"Mixture: smoothing=1e-06 alone holds up component \d: it has shrunk to a"):
        model = Mixture(Normal(), 2, EM(max_iter=300), random_state=0).fit(X)
    point = int(np.argmin(np.abs(model.eta_[:, 0])))
    assert model.held_ == [point]
    assert np.isfinite(model.history_).all()
    np.testing.assert_allclose(model.weights_[point], 0.25, atol=1e-6)


def test_equal_rows_survive():
    model = Mixture(Normal(), 2, random_state=0).fit(np.full((30, 2), 3.0))
    assert np.isfinite(model.log_prob([[3.0, 3.0]])).all()
    np.testing.assert_allclose(model.eta_[:, ::2], 3.0)


def test_an_empty_component_begins_again_where_rows_are_explained_worst():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 100), rng.normal(30, 1, 50)])[:, None]
    bound, params = steps(Normal(), X)
    params = {
        "weights": torch.tensor([[1.0, 0.0]]).double(),
        "eta": torch.tensor([[[0.0, 0.0], [500.0, 0.0]]]).double(),
    }
    statistics, value = bound.expect(params)
    params = bound.maximise(params, statistics)
    assert list(bound.reseeded) == [(0, 1)]
    assert params["weights"][0, 1] > 0.1
    for _ in range(60):
        statistics, after = bound.expect(params)
        assert after >= value - 1e-9
        params, value = bound.maximise(params, statistics), after
    np.testing.assert_allclose(sorted(params["eta"][0, :, 0].tolist()), [X[:100].mean(), X[100:].mean()], atol=1e-3)


def test_a_component_that_gains_nothing_stays_empty():
    """All rows are equal and explained by the first component: no share of the second would gain anything."""
    X = np.zeros((20, 1))
    bound, _ = steps(Poisson(), X)
    params = {"weights": torch.tensor([[1.0, 0.0]]).double(), "eta": torch.tensor([[[-27.0], [8.0]]]).double()}
    improved = bound.maximise(params, bound.expect(params)[0])
    assert list(bound.reseeded) == [(0, 1)]
    assert float(bound.expect(improved)[1]) >= float(bound.expect(params)[1])


# --- bad input ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (Mixture(Normal(), 5), [[1.0], [2.0]], r"X has 2 samples, fewer than n_components=5; ask for fewer"),
        (Mixture(), [[1.0, np.nan], [2.0, np.nan]], r"column 1 of X has no value: all its rows are NaN"),
        (Mixture(), [[1.0], [np.inf]], r"X contains infinity \(inf\) at row 1, column 0"),
        (Mixture(Poisson()), [[1.0], [-2.0]], r"X has a negative value \(-2.0 at row 1\); Poisson needs counts"),
        (Mixture(Gamma()), [[1.0, 2.0], [3.0, -1.0]], r"column '1' of X has a negative value \(-1.0 at row 1\)"),
        (Mixture([Normal(), Normal()]), [[1.0], [2.0]], r"X has 1 columns, but the 2 likelihoods describe 2"),
        (Mixture(Normal()), np.zeros((3, 2, 2)), r"X has shape \(3, 2, 2\); Mixture needs one vector a row"),
        (Mixture(3), [[1.0], [2.0]], r"likelihood must be one of the likelihood specs \(Bernoulli.*found 3"),
        (Mixture(n_components=0), [[1.0]], r"Mixture\(n_components=0\): n_components must be a positive integer"),
        (Mixture(init="best"), [[1.0]], r"Mixture\(init='best'\): init must be \"k-means\+\+\" or \"random\""),
        (Mixture(smoothing=-1), [[1.0]], r"Mixture\(smoothing=-1\): smoothing must be a number of at least 0"),
        (
            Mixture(inference="newton()"),
            [[1.0], [2.0], [4.0]],
            "Newton needs η = .*; Mixture has none: use EM, Ensemble, FineTune, HMC, ",
        ),
    ],
)
def test_bad_input_is_refused(model, X, message):
    with pytest.raises((DataError, SpecError), match=message):
        model.fit(X)


def test_rows_without_weight_do_not_count_as_rows():
    with pytest.raises(DataError, match="X has 1 sample with weight, fewer than n_components=2"):
        Mixture().fit([[1.0], [2.0], [3.0]], sample_weight=[0, 1, 0])


def test_new_rows_are_checked_too(counts):
    _, model = counts
    with pytest.raises(
        DataError, match=r"column '1' of X has a negative value \(-1.0 at row 0\); Poisson needs counts"
    ):
        model.predict([[1.0, -1.0]])
    with pytest.raises(DataError, match="n=0: how many to draw must be an integer above 0"):
        model.sample(0)
    with pytest.raises(SpecError, match="several likelihoods: torch has no such mixture"):
        Mixture([Normal(), Poisson()], 1).fit([[1.0, 2], [2.0, 3]]).distribution()


def test_stopping_early_is_said():
    X = np.random.default_rng(0).normal(size=(100, 1))
    with pytest.warns(ConvergenceWarning, match="Mixture was still rising after max_iter=1 steps of EM"):
        Mixture(Normal(), 3, EM(max_iter=1, tol=1e-12), random_state=0).fit(X)


def test_scikit_learns_own_checks_pass():
    excused = {
        "check_sample_weight_equivalence_on_dense_data": "first guesses draw other rows where rows are repeated",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        results = check_estimator(Mixture(random_state=0), on_fail=None, on_skip=None, expected_failed_checks=excused)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert failed == {}
