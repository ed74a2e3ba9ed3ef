"""Laplace's approximation: exact where it should be, and what it says elsewhere against integrals and Hessians."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import expit, log_expit
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.core.errors import ApproximationWarning, ModelFileError, SpecError
from likely.inference import MAP, Ensemble, Exact, Newton
from likely.inference.laplace.laplace import Laplace
from likely.inference.laplace.posterior import LaplacePosterior, _nodes
from likely.likelihoods import Bernoulli, Categorical, Normal, Poisson
from likely.networks import MLP
from likely.priors import Flat, Prior
from likely.priors import Laplace as LaplacePrior
from likely.priors import Normal as NormalPrior

FORMS = ["full", "kronecker", "diagonal"]
PROPER = NormalPrior(2.0, biases=NormalPrior(3.0))


def covariance(posterior):
    """Σ in the order of the blocks' parameters, by pushing unit vectors through the roots."""
    names = [name for block in posterior.blocks for name in block.names]
    sizes = [posterior.parameters[name].numel() for name in names]
    rows = torch.eye(sum(sizes), dtype=torch.float64).split(sizes, 1)
    unit = {n: r.reshape(-1, *posterior.parameters[n].shape[1:]) for n, r in zip(names, rows, strict=True)}
    roots = [block.times(unit) for block in posterior.blocks]
    return sum(root @ root.T for root in roots).numpy()


@pytest.fixture
def regression(rng):
    X = rng.normal(size=(30, 4))
    return X, X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=30) + 1


@pytest.fixture
def orthogonal(rng):
    """Columns that are orthogonal to each other and to the ones."""
    q = np.linalg.qr(np.column_stack([np.ones(40), rng.normal(size=(40, 3))]))[0]
    X = q[:, 1:] * [3.0, 5.0, 2.0]
    return X, X @ [1.0, -1.0, 0.3] + rng.normal(size=40)


# --- linear models with normal noise -----------------------------------------------------------------------------
@pytest.mark.parametrize("prior", [Flat(), NormalPrior(2.0), PROPER], ids=repr)
@pytest.mark.parametrize(("form", "design"), [("full", 0), ("kronecker", 0), *((form, 1) for form in FORMS)])
def test_it_is_exact_for_linear_models_with_normal_noise(regression, orthogonal, prior, form, design):
    X, y = (regression, orthogonal)[design]
    exact = Regressor(Normal(scale=0.7), prior=prior, inference=Exact("full")).fit(X, y)
    laplace = Regressor(Normal(scale=0.7), prior=prior, inference=Laplace(form)).fit(X, y)
    wanted, approximate = exact.predict_dist(X), laplace.predict_dist(X)
    np.testing.assert_allclose(approximate.mean, wanted.mean, rtol=1e-9)
    np.testing.assert_allclose(approximate.stddev, wanted.stddev, rtol=1e-9)
    np.testing.assert_allclose(covariance(laplace.posterior_), exact.posterior_.covariance[0], atol=1e-10)
    assert laplace.posterior_.info["log_evidence"] == pytest.approx(exact.posterior_.info["log_evidence"], abs=1e-8)


def test_weights_are_counts(regression):
    X, y = regression
    counts = np.arange(30) % 3
    twice = [Regressor(Normal(scale=0.7), prior=PROPER, inference=Laplace(form)) for form in FORMS]
    for model in twice:
        weighted = model.fit(X, y, sample_weight=counts).posterior_
        repeated = model.fit(np.repeat(X, counts, 0), np.repeat(y, counts)).posterior_
        np.testing.assert_allclose(covariance(weighted), covariance(repeated), rtol=1e-8, atol=1e-12)
        assert weighted.info["log_evidence"] == pytest.approx(repeated.info["log_evidence"], abs=1e-8)


def test_draws_have_the_posterior_covariance(regression, seed):
    X, y = regression
    for form in FORMS:
        posterior = Regressor(Normal(scale=0.7), prior=PROPER, inference=Laplace(form)).fit(X, y).posterior_
        drawn = posterior.draw(40_000, torch.Generator().manual_seed(seed)).parameters
        flat = torch.cat([drawn["network.weight"].flatten(1), drawn["network.bias"]], 1).numpy()
        wanted = covariance(posterior)
        scale = np.sqrt(np.outer(wanted.diagonal(), wanted.diagonal()))
        np.testing.assert_allclose(np.cov(flat.T) / scale, wanted / scale, atol=0.04)  # 5 standard errors or more


# --- other likelihoods -------------------------------------------------------------------------------------------
def test_logistic_covariance_is_the_inverse_hessian(rng):
    X = rng.normal(size=(100, 3))
    y = rng.random(100) < expit(X @ [1.0, -1.0, 0.5])
    model = Classifier(prior=NormalPrior(1.5), inference=Laplace(by=Newton())).fit(X, y)
    p = model.posterior_.module(torch.from_numpy(X)).sigmoid().numpy()[:, 0]
    rows = np.column_stack([X, np.ones(100)])
    hessian = (rows.T * (p * (1 - p))) @ rows + np.diag([1.5**-2] * 3 + [0.0])
    np.testing.assert_allclose(covariance(model.posterior_), np.linalg.inv(hessian), rtol=1e-6)


def test_predictions_integrate_the_likelihood_over_eta(rng):
    """η has a scale of √(1.5² + 1.5² + 1) = 2.35 at most, that of the prior: there 32 nodes are off by 2e-6 or less."""
    X = rng.uniform(-1.5, 1.5, size=(12, 2))
    y = (X[:, 0] > 0).astype(int)
    prior = NormalPrior(1.0, biases=NormalPrior(1.0))
    model = Classifier(prior=prior, inference=Laplace(by=Newton()), standardise=False).fit(X, y)
    mean, variance = (part.flatten().numpy() for part in model.posterior_.eta_moments(torch.from_numpy(X)))
    for row in range(3):
        m, s = mean[row], math.sqrt(variance[row])
        wanted = quad(lambda t, m=m, s=s: expit(m + s * t) * math.exp(-t * t / 2) / math.sqrt(2 * math.pi), -12, 12)[0]
        assert model.predict_proba(X)[row, 1] == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("n", [20, 200])
def test_evidence_is_close_to_the_integral(rng, n):
    """One weight, no bias: log ∫ p(y | θ) p(θ) dθ by quadrature; the error falls as 1/n."""
    x = rng.normal(size=n)
    y = (rng.random(n) < expit(x)).astype(float)
    model = Regressor(Bernoulli(), "linear(bias=False)", NormalPrior(1.0), Laplace(by=Newton())).fit(x[:, None], y)

    def log_joint(t):
        return log_expit((2 * y - 1) * x * t).sum() - 0.5 * t * t - 0.5 * math.log(2 * math.pi)

    top = float(model.posterior_.parameters["network.weight"])
    integral = quad(lambda t: math.exp(log_joint(t) - log_joint(top)), top - 6, top + 6)[0]
    assert model.posterior_.info["log_evidence"] == pytest.approx(math.log(integral) + log_joint(top), abs=1 / n)


def test_a_learned_scale_is_a_parameter(regression):
    """σ̂² = RSS/n has Var(log σ) = 1/2n, independent of the weights."""
    X, y = regression
    posterior = Regressor(inference=Laplace()).fit(X, y).posterior_
    names = [name for name in posterior.blocks[0].names for _ in range(posterior.parameters[name].numel())]
    spread, at = covariance(posterior), names.index("shared")
    assert spread[at, at] == pytest.approx(1 / 60, rel=1e-6)
    np.testing.assert_allclose(np.delete(spread[at], at), 0, atol=1e-9)


# --- networks ----------------------------------------------------------------------------------------------------
def network_fit(form, likelihood, rng, **options):
    X = rng.normal(size=(40, 3))
    y = rng.integers(0, 3, size=40).astype(float)
    kind = Classifier if likelihood.labels else Regressor
    inference = Laplace(form, by=MAP(epochs=5), **options)
    return kind(likelihood, MLP((4,), activation="tanh"), PROPER, inference, random_state=0).fit(X, y), X, y


def test_full_is_the_gauss_newton_matrix(rng):
    """Σ⁻¹ by one backward pass for each row and number of η."""
    model, X, _ = network_fit("full", Categorical(), rng)
    posterior = model.posterior_
    module = posterior.module_of(0).requires_grad_()
    eta = module(torch.from_numpy(X))
    hessian = 0
    for row in eta:
        grads = [torch.autograd.grad(value, list(module.parameters()), retain_graph=True) for value in row]
        J = torch.stack([torch.cat([part.flatten() for part in grad]) for grad in grads])
        p = row.softmax(-1).detach()
        hessian = hessian + J.T @ (torch.diag(p) - torch.outer(p, p)) @ J
    rates = [(2.0 if value.ndim > 1 else 3.0) ** -2 for value in module.parameters() for _ in range(value.numel())]
    hessian = hessian + torch.diag(torch.tensor(rates, dtype=torch.float64))
    np.testing.assert_allclose(covariance(posterior), torch.linalg.inv(hessian), rtol=1e-6, atol=1e-9)


def test_diagonal_is_the_inverse_of_the_diagonal(rng):
    state = rng.bit_generator.state
    full = network_fit("full", Poisson(), rng)[0].posterior_
    rng.bit_generator.state = state
    diagonal = network_fit("diagonal", Poisson(), rng)[0].posterior_
    wanted = 1 / np.linalg.inv(covariance(full)).diagonal()
    np.testing.assert_allclose(covariance(diagonal), np.diag(wanted), rtol=1e-6, atol=1e-12)


def test_kronecker_has_the_factors_of_the_last_layer(rng):
    """With one η and its information S, the last layer's block is (Σ a aᵀ) · mean S + prior."""
    model, X, _ = network_fit("kronecker", Poisson(), rng)
    module = model.posterior_.module
    with torch.no_grad():
        x = torch.from_numpy(X)
        a = torch.cat([module.network[:2](module.inputs(x)), torch.ones(40, 1, dtype=torch.float64)], 1)
        information = module(x).exp().mean()
    wanted = torch.linalg.inv(a.T @ a * information + torch.diag(torch.tensor([0.25] * 4 + [1 / 9]).double()))
    block = next(b for b in model.posterior_.blocks if b.names[0] == "network.2.weight")
    unit = torch.eye(5, dtype=torch.float64)
    root = block.times({block.names[0]: unit[:, None, :4], block.names[1]: unit[:, 4:]})
    np.testing.assert_allclose(root @ root.T, wanted, rtol=1e-6, atol=1e-10)


def test_kronecker_is_exact_for_one_layer_at_many_positions(rng):
    """The same W at every position of a row: as many rows as there are positions."""
    X = rng.normal(size=(15, 4, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=(15, 4))
    made = [Regressor(Normal(scale=0.7), prior=PROPER, inference=Laplace(form)) for form in ("full", "kronecker")]
    full, kronecker = (model.fit(X, y).posterior_ for model in made)
    rows = made[0].fit(X.reshape(-1, 3), y.reshape(-1)).posterior_
    np.testing.assert_allclose(covariance(full), covariance(rows), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(covariance(kronecker), covariance(rows), rtol=1e-8, atol=1e-12)


class Loop(nn.Module):
    """Looks at numbers to decide what to do, which cannot be vectorised over rows; one layer is used twice."""

    def __init__(self, features, out):
        super().__init__()
        self.twice, self.last = nn.Linear(features, features), nn.Linear(features, out)

    def forward(self, x):
        h = torch.tanh(self.twice(torch.tanh(self.twice(x))))
        return self.last(h if float(h.detach().abs().max()) >= 0 else -h)


@pytest.mark.parametrize("form", FORMS)
def test_any_module_and_positions(rng, form):
    X, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    model = Regressor(
        network=lambda shape, out: Loop(shape[-1], out), prior=PROPER, inference=Laplace(form, MAP(epochs=3))
    )
    predicted = model.fit(X, y).predict_dist(X)
    assert predicted.mean.shape == (20, 2)
    assert bool(torch.isfinite(predicted.stddev).all())
    kinds = [type(block).__name__ for block in model.posterior_.blocks]
    assert kinds == {"full": ["Dense"], "diagonal": ["Diagonal"], "kronecker": ["Layer", "Diagonal"]}[form]


@pytest.mark.sensitive
@pytest.mark.parametrize("form", FORMS)
def test_save_and_load(rng, tmp_path, form):
    model, X, y = network_fit(form, Categorical(), rng, draws=8)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    assert isinstance(loaded.posterior_, LaplacePosterior)
    np.testing.assert_array_equal(loaded.log_prob(X, y), model.log_prob(X, y))
    np.testing.assert_array_equal(covariance(loaded.posterior_), covariance(model.posterior_))


def test_a_file_with_another_covariance_is_refused(rng):
    posterior = network_fit("diagonal", Categorical(), rng)[0].posterior_
    learned, tensors = posterior.state()
    short = tensors | {"blocks.0.scale": tensors["blocks.0.scale"][:-1]}
    with pytest.raises(ModelFileError, match="its covariance has another shape"):
        LaplacePosterior.restore(posterior.module, learned, short)
    with pytest.raises(ModelFileError, match="not that of its network"):
        LaplacePosterior.restore(posterior.module, learned | {"blocks": [{"kind": "none", "names": []}]}, tensors)


@pytest.mark.parametrize("size", [1, 2, 7, 32, 40])
def test_nodes_have_the_moments_of_a_standard_normal(size):
    """Of 40 numbers 32 pairs cannot have covariance I; they have its diagonal."""
    nodes, weights = _nodes(size, 64)
    assert float(weights.sum()) == pytest.approx(1)
    np.testing.assert_allclose(weights @ nodes, 0, atol=1e-12)
    np.testing.assert_allclose(weights @ nodes.square(), 1, rtol=1e-9)
    if size <= 32:
        np.testing.assert_allclose(nodes.T * weights @ nodes, np.eye(size), atol=1e-9)


# --- edges -------------------------------------------------------------------------------------------------------
class _Curved(Prior):
    """Σ −½(θ/2)² without rates: known by its values alone."""

    def log_prob(self, parameters):
        return sum(-0.125 * value.square().sum() for value in parameters.values())


def test_a_prior_known_by_its_values_has_its_curvature(regression):
    X, y = regression
    own = Regressor(Normal(scale=0.7), prior=_Curved(), inference=Laplace(by=Newton())).fit(X, y)
    rates = Regressor(
        Normal(scale=0.7), prior=NormalPrior(2.0, biases=NormalPrior(2.0)), inference=Laplace(by=Newton())
    ).fit(X, y)
    np.testing.assert_allclose(covariance(own.posterior_), covariance(rates.posterior_), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_directions_that_nothing_holds_are_named_and_left(regression, form):
    X, y = regression
    X = np.column_stack([X, np.zeros(30)])  # an empty column
    with pytest.warns(ApproximationWarning, match=r"1 of 6 directions.*Give every parameter a prior"):
        model = Regressor(Normal(scale=0.7), inference=Laplace(form)).fit(X, y)
    same = Regressor(Normal(scale=0.7), inference=Laplace(form)).fit(X[:, :4], y)
    np.testing.assert_allclose(model.predict_dist(X).stddev, same.predict_dist(X[:, :4]).stddev, rtol=1e-8)
    evidence = [fit.posterior_.info["log_evidence"] for fit in (model, same)]
    assert evidence[0] == pytest.approx(evidence[1], abs=1e-8)


def test_l1_is_said_to_have_no_curvature(regression):
    with pytest.warns(ApproximationWarning, match="has a kink at 0"):
        Regressor(Normal(scale=0.7), prior=LaplacePrior(1.0), inference=Laplace(by=Newton())).fit(*regression)


def test_too_large_for_a_full_matrix(regression):
    with pytest.raises(SpecError, match=r'3,000. Use covariance="kronecker"'):
        Regressor(network=MLP((60, 60)), inference=Laplace()).fit(*regression)


def test_one_mode(regression):
    with pytest.raises(SpecError, match="gave 2 members"):
        Regressor(inference=Laplace(by=Ensemble(2, by=MAP(epochs=1)))).fit(*regression)


@pytest.mark.parametrize(("arguments", "text"), [(("block",), "covariance"), (("full", "auto", 1), "draws")])
def test_bad_specs(arguments, text):
    with pytest.raises(SpecError, match=text):
        Laplace(*arguments)


def test_more_data_make_less_spread(rng):
    X = rng.normal(size=(200, 2))
    y = np.sin(X[:, 0])
    spreads = []
    for rows in (20, 200):
        model = Regressor(
            Normal(scale=0.1), MLP((8,), activation="tanh"), PROPER, Laplace(by=MAP(epochs=20)), random_state=0
        )
        spreads.append(float(model.fit(X[:rows], y[:rows]).predict_dist(X).stddev.mean()))
    assert spreads[1] < spreads[0]
