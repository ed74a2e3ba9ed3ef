"""The normal distribution nearest to the posterior."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from torch import nn

import likely
from likely import Classifier, Regressor
from likely.core.errors import ModelFileError, SpecError
from likely.core.files import read_file, write_file
from likely.inference import MAP, Ensemble, Exact, Inference, Posterior, Variational
from likely.inference.training import mini_batches
from likely.inference.variational.gaussian_family import FullRank, LowRank, MeanField
from likely.inference.variational.posterior import VariationalPosterior
from likely.likelihoods import Normal, Poisson
from likely.networks import MLP, Linear
from likely.optim import LBFGS, Adam
from likely.priors import Normal as NormalPrior

PRIOR = NormalPrior(1.0, biases=NormalPrior(3.0))


@pytest.fixture
def X(rng):
    """Correlated columns that are not centred, so that the posterior is narrow in some directions only."""
    return rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) + 2


@pytest.fixture
def y(rng, X):
    return X @ [1.0, -2.0, 0.5, 0.0] + 0.5 * rng.normal(size=60)


@pytest.fixture
def exact(X, y):
    return Regressor(Normal(0.5), prior=PRIOR, inference=Exact("full")).fit(X, y)


def fitted(inference, X, y, seed=0, **options):
    return Regressor(Normal(0.5), prior=PRIOR, inference=inference, random_state=seed).fit(X, y, **options)


def centre(model):
    return torch.from_numpy(np.append(model.coef_, model.intercept_))


# --- normal posteriors: everything is known -------------------------------------------------------------------------
def test_full_rank_is_the_posterior_of_a_linear_model_with_normal_noise(X, y, exact):
    posterior = fitted(Variational("full-rank", steps=200), X, y).posterior_
    torch.testing.assert_close(posterior.gaussian.mean, centre(exact), rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(posterior.gaussian.covariance(), exact.posterior_.covariance[0], rtol=1e-5, atol=1e-9)
    assert abs(posterior.info["elbo"] - exact.posterior_.info["log_evidence"]) <= 1e-6


def test_mean_field_has_the_mean_and_the_conditional_variances(X, y, exact):
    """KL(q ‖ p) of independent numbers is least at sᵢ² = 1/Λᵢᵢ."""
    gaussian = fitted(Variational(steps=200), X, y).posterior_.gaussian
    precision = torch.linalg.inv(exact.posterior_.covariance[0])
    torch.testing.assert_close(gaussian.mean, centre(exact), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(gaussian.covariance(), torch.diag(1 / precision.diagonal()), rtol=1e-4, atol=1e-12)


def test_bounds_grow_with_the_family_and_none_exceeds_the_evidence(X, y, exact, seed):
    """Each is known up to its standard error, of which 5 are allowed: a false alarm in 3 of 10⁶ seeds."""
    fits = [
        fitted(Variational(family, rank=rank, steps=500), X, y, seed).posterior_.info
        for family, rank in (("mean-field", 1), ("low-rank", 1), ("low-rank", 2), ("low-rank", 5), ("full-rank", 1))
    ]
    bounds, errors = ([info[name] for info in fits] for name in ("elbo", "elbo_error"))
    for (low, high), pair in zip(pairwise(bounds), pairwise(errors), strict=True):
        assert low <= high + 5 * math.hypot(*pair) + 1e-6
    evidence = exact.posterior_.info["log_evidence"]
    assert all(bound <= evidence + 5 * error + 1e-6 for bound, error in zip(bounds, errors, strict=True))
    assert bounds[3] == pytest.approx(evidence, abs=0.01)  # D + VVᵀ with five columns is any covariance of five numbers
    assert bounds[0] < evidence - 1


def test_the_gap_of_mean_field_is_the_divergence_of_two_normals(X, y, exact, seed):
    """log p(y) − ELBO = KL(q ‖ p) = ½ log(Π Λᵢᵢ · |Σ|) here: within 5 standard errors, but for 1 in 10⁶ seeds."""
    info = fitted(Variational(steps=200), X, y, seed).posterior_.info
    covariance = exact.posterior_.covariance[0]
    gap = 0.5 * (torch.linalg.inv(covariance).diagonal().log().sum() + torch.logdet(covariance))
    assert abs(exact.posterior_.info["log_evidence"] - info["elbo"] - float(gap)) <= 5 * info["elbo_error"]


class _StartAt(Inference):
    """Given numbers, whatever the data."""

    theta: tuple[float, ...] = ()

    @property
    def dtype(self):
        return torch.float64

    def fit(self, problem):
        module = problem.module()
        nn.utils.vector_to_parameters(torch.tensor(self.theta, dtype=torch.float64), module.parameters())
        return Posterior.of(module)


def test_steps_are_needed_and_suffice_from_a_start_that_is_not_the_mode(X, y, exact):
    """Full rank, started 2 standard deviations away along each axis of the posterior."""
    root = torch.linalg.cholesky(exact.posterior_.covariance[0])
    start = _StartAt(tuple((centre(exact) + 2 * root.sum(1)).tolist()))
    away = torch.linalg.solve(root, centre(fitted(start, X, y)) - centre(exact))
    torch.testing.assert_close(away, torch.full((5,), 2.0, dtype=torch.float64))
    posterior = fitted(Variational("full-rank", steps=1000, by=start), X, y).posterior_
    assert torch.linalg.solve(root, posterior.gaussian.mean - centre(exact)).abs().max() <= 1e-2
    torch.testing.assert_close(posterior.gaussian.covariance(), exact.posterior_.covariance[0], rtol=1e-2, atol=1e-5)


def test_mini_batches_find_the_same_distribution(X, y, exact):
    """With 20 of 60 rows a step, means are right within 0.3 and widths within 15 % of a standard deviation."""
    gaussian = fitted(Variational("full-rank", batch_size=20, steps=1500), X, y).posterior_.gaussian
    root = torch.linalg.inv(torch.linalg.cholesky(exact.posterior_.covariance[0]))
    assert (root @ (gaussian.mean - centre(exact))).abs().max() <= 0.3
    widths = (root @ gaussian.covariance() @ root.T).diagonal().sqrt()
    assert (widths - 1).abs().max() <= 0.15


def test_a_weight_of_two_is_a_row_twice(X, y):
    weight = np.where(np.arange(60) < 20, 2.0, 1.0)
    weighted = fitted(Variational("full-rank", steps=50), X, y, sample_weight=weight).posterior_
    twice = np.concatenate([X, X[:20]]), np.concatenate([y, y[:20]])
    repeated = fitted(Variational("full-rank", steps=50), *twice).posterior_
    torch.testing.assert_close(weighted.gaussian.covariance(), repeated.gaussian.covariance(), rtol=1e-4, atol=1e-8)
    assert weighted.info["elbo"] == pytest.approx(repeated.info["elbo"], abs=1e-5)


# --- one number, where integrals can be computed ---------------------------------------------------------------------
COUNTS = np.array([0.0, 3.0, 1.0, 9.0, 2.0])
PLACES = np.array([-1.0, 0.5, 0.2, 1.5, 0.1])


def log_joint(weight):
    return stats.poisson.logpmf(COUNTS, np.exp(PLACES * weight)).sum() + stats.norm.logpdf(weight)


def bound(mean, scale):
    """The ELBO by quadrature."""
    points, weights = hermegauss(60)
    weights = weights / weights.sum()
    expected = sum(w * log_joint(mean + scale * point) for point, w in zip(points, weights, strict=True))
    return expected + 0.5 * np.log(2 * np.pi * np.e * scale**2)


@pytest.mark.parametrize("family", ["mean-field", "full-rank"])
def test_the_bound_is_estimated_without_bias_and_maximised(family, seed):
    """The bound within 4 of its standard errors, which are passed once in 16,000 runs."""
    inference = Variational(family, steps=1000)
    network = Linear(bias=False)
    model = Regressor(Poisson(), network, NormalPrior(1.0), inference, random_state=seed)
    posterior = model.fit(PLACES[:, None], COUNTS).posterior_
    mean, scale = float(posterior.gaussian.mean), float(posterior.gaussian.variance().sqrt())
    elbo, error = posterior.info["elbo"], posterior.info["elbo_error"]
    assert abs(elbo - bound(mean, scale)) <= 4 * error
    best = minimize(lambda point: -bound(point[0], np.exp(point[1])), [mean, np.log(scale)], method="Nelder-Mead")
    assert mean == pytest.approx(best.x[0], abs=0.02 * scale)
    assert scale == pytest.approx(np.exp(best.x[1]), rel=0.02)
    evidence = np.log(quad(lambda weight: np.exp(log_joint(weight)), -5, 5, points=[mean])[0])
    assert -best.fun < evidence < -best.fun + 0.05


@pytest.mark.parametrize("family", [MeanField, LowRank, FullRank])
def test_families_know_their_density_and_its_gradient(family, rng, seed):
    """log q and ∇ log q of draws, against torch's multivariate normal."""
    shift = torch.from_numpy(rng.normal(size=3))
    made = family(shift, torch.from_numpy(rng.normal(size=(3, 2)))) if family is LowRank else family(shift)
    with torch.no_grad():
        for value in made.own.values():
            value += torch.from_numpy(rng.normal(size=value.shape)) * 0.5
    noise = torch.from_numpy(rng.normal(size=(5, made.columns)))
    draws = made.draw(noise).detach().requires_grad_()
    gaussian = made.gaussian()
    log_q = torch.distributions.MultivariateNormal(gaussian.mean, gaussian.covariance()).log_prob(draws)
    log_density, score = made.score(noise)
    torch.testing.assert_close(log_density, log_q.detach())
    torch.testing.assert_close(score, torch.autograd.grad(log_q.sum(), draws)[0])
    many = gaussian.draw(100_000, torch.Generator().manual_seed(seed))
    unit = gaussian.variance().outer(gaussian.variance()).sqrt()  # of 100,000 draws, 6 standard errors are 0.027 of it
    torch.testing.assert_close(torch.cov(many.T) / unit, gaussian.covariance() / unit, rtol=0, atol=0.03)
    torch.testing.assert_close(gaussian.variance(), gaussian.covariance().diagonal())


# --- networks ------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(80, 1))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=80)


def test_the_bound_grows_and_answers_are_less_sure_away_from_data(wave):
    """The lines of a ReLU network spread in proportion to the distance."""
    X, y = wave
    inference = Variational("low-rank", rank=3, steps=300, by=MAP(Adam(0.05), epochs=300))
    options = {"inference": inference, "random_state": 0, "standardise": False}
    model = Regressor(network=MLP((8,)), prior=NormalPrior(1.0), **options).fit(X, y)
    trace = model.posterior_.info["elbo_trace"]
    quarters = [np.mean(part) for part in np.array_split(trace, 4)]
    assert quarters[-1] > quarters[0]
    inside, outside = model.predict_dist([[0.5], [9.0]]).variance
    assert outside > 2 * inside


@pytest.mark.sensitive
def test_answers_are_repeatable_and_a_file_keeps_them(wave, tmp_path):
    X, y = wave
    for family in ("mean-field", "low-rank", "full-rank"):
        inference = Variational(family, rank=2, steps=5, draws=7, by=MAP(epochs=2))
        model, again = (
            Regressor(network=MLP((4,)), prior=NormalPrior(), inference=inference, random_state=3).fit(X, y)
            for _ in range(2)
        )
        before = torch.get_rng_state()
        answer = model.predict_dist(X)
        assert torch.equal(torch.get_rng_state(), before)
        assert torch.equal(again.predict_dist(X).mean, answer.mean)
        model.save(tmp_path / "model.likely")
        loaded = likely.load(tmp_path / "model.likely")
        assert isinstance(loaded.posterior_, VariationalPosterior)
        assert len(loaded.posterior_) == 7
        assert torch.equal(loaded.predict_dist(X).mean, answer.mean)
        np.testing.assert_array_equal(loaded.log_prob(X, y), model.log_prob(X, y))
        assert torch.equal(loaded.posterior_.gaussian.covariance(), model.posterior_.gaussian.covariance())
        assert loaded.posterior_.info == model.posterior_.info


def test_members_are_mirrored_so_that_coefficients_are_exact(X, y, exact):
    model = fitted(Variational("full-rank", steps=100, draws=50), X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-6, atol=1e-6)


def test_intervals_are_those_of_the_closed_form(X, y, exact, seed):
    """The variance of 5,000 mirrored pairs has a standard error of √(2/5,000) = 2 %: at 60 rows, all within 12 %.

    That are 6 of it for each: by χ² with 5,000 degrees of freedom, a false alarm in 1 of 10⁶ seeds.
    """
    model = fitted(Variational("full-rank", steps=100, draws=10_000), X, y, seed)
    spread = model.predict_dist(X).variance - 0.25
    torch.testing.assert_close(spread, exact.predict_dist(X).variance - 0.25, rtol=0.12, atol=0)


def test_more_members_on_demand(X, y, exact, seed):
    posterior = fitted(Variational("full-rank", steps=100), X, y).posterior_
    drawn = posterior.draw(50_000, torch.Generator().manual_seed(seed))
    weights = drawn.parameters["network.weight"][:, 0]
    expected = exact.posterior_.covariance[0][:4, :4]
    unit = expected.diagonal().outer(expected.diagonal()).sqrt()  # of 50,000 draws, 6 standard errors are 0.04 of it
    torch.testing.assert_close(torch.cov(weights.T) / unit, expected / unit, rtol=0, atol=0.04)
    assert len(drawn) == 50_000


def half_frozen(in_shape, out_features):
    network = nn.Sequential(nn.Linear(in_shape[-1], 4), nn.Tanh(), nn.Linear(4, out_features))
    network[0].requires_grad_(False)
    return network


def test_parameters_that_are_not_trained_are_certain(wave, tmp_path):
    X, y = wave
    inference = Variational("low-rank", rank=2, steps=5, draws=6, by=MAP(epochs=2))
    model = Regressor(network=half_frozen, inference=inference, random_state=0).fit(X, y)
    parameters = model.posterior_.parameters
    assert parameters["network.0.weight"].std(0).max() == 0
    assert parameters["network.2.weight"].std(0).min() > 0
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely", network=half_frozen)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_an_ensemble_of_them_averages_over_modes(wave):
    X, y = wave
    inference = Ensemble(2, Variational(steps=3, draws=4, by=MAP(epochs=2)))
    model = Regressor(network=MLP((4,)), inference=inference, random_state=0).fit(X, y)
    assert len(model.posterior_) == 8


def test_large_networks_are_fitted_in_float32(wave, monkeypatch):
    X, y = wave
    monkeypatch.setattr(mini_batches, "LARGE", 10)
    inference = Variational(steps=20, draws=4, by=MAP(epochs=2))
    model = Classifier(network=MLP((8,)), prior=NormalPrior(), inference=inference, random_state=0).fit(X, y > 0)
    assert model.posterior_.dtype == torch.float32
    assert np.isfinite(model.predict_proba(X)).all()


# --- what is refused -------------------------------------------------------------------------------------------------
def test_full_rank_of_a_large_network_is_refused_with_a_remedy(wave):
    X, y = wave
    inference = Variational("full-rank", by=MAP(epochs=1))
    with pytest.raises(SpecError, match=r'2,\d\d\d × 2,\d\d\d; it takes up to 2,000 parameters. Use family="low-rank"'):
        Regressor(network=MLP((45, 45)), inference=inference, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "full"}, r'family must be "mean-field", "low-rank" or "full-rank"'),
        ({"samples": 3}, r"Variational\(samples=3\): samples must be a positive even number"),
        ({"rank": 0}, r"rank must be a positive integer"),
        ({"steps": 0}, r"steps must be a positive integer"),
        ({"batch_size": 0}, r"batch_size must be a positive integer, or None"),
        ({"optimizer": LBFGS()}, r"optimizer must be one without a line search, such as Adam"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(SpecError, match=message):
        Variational(**options)


@pytest.mark.parametrize("damage", ["scale", "draws", "trainable"])
def test_files_that_do_not_fit_their_specs_are_refused(damage, X, y, tmp_path):
    path = tmp_path / "model.likely"
    fitted(Variational(steps=2), X, y).save(path)
    header, tensors = read_file(path)
    learned = header["learned"]["posterior"]
    if damage == "scale":
        name = next(key for key in tensors if key.endswith("scale"))
        tensors[name] = tensors[name][:2]
    elif damage == "draws":
        learned["info"]["draws"] = 0
    else:
        learned["trainable"] = ["network.nothing"]
    write_file(path, header, tensors)
    refusal = "draws=0 .* draws are from 1 to" if damage == "draws" else "does not fit its own specs"
    with pytest.raises(ModelFileError, match=refusal):
        likely.load(path)
