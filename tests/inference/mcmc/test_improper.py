"""Posteriors without a finite integral are told from those with one, by densities whose tails are known."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.base import clone

from likely import GaussianMixture, HiddenMarkov, Mixture
from likely.core.errors import ApproximationWarning, TrainingError
from likely.inference import HMC, NUTS
from likely.inference.coordinates import Coordinates
from likely.inference.mcmc.improper import check_proper
from likely.inference.parameters import FlatParameters
from likely.likelihoods import Poisson
from likely.priors import Flat


class Tails:
    """A density of (weight, shared) whose tails along the weight are given; normal along the other."""

    def __init__(self, tail, names=("weight", "other"), *, held=False, offers=("eta",)):
        self.tail, self.parameters, self.held = tail, FlatParameters(dict.fromkeys(names, (1,))), held
        self.problem = SimpleNamespace(objective=SimpleNamespace(offers=offers, may_empty=False))

    def __call__(self, theta):
        return self.tail(theta[:, 0]) - 0.5 * theta[:, 1].square()

    def named(self, theta):
        return self.parameters.named(theta)


DENSE = Coordinates(torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64))
PLAIN = Coordinates(torch.zeros(2, dtype=torch.float64))
START = torch.zeros(1, 2, dtype=torch.float64)
PRIOR = SimpleNamespace(name="flat")

PROPER = {
    "normal": lambda t: -0.5 * t.square(),
    "Laplace": lambda t: -t.abs(),
    "Cauchy": lambda t: -torch.log1p(t.square()),
    "a valley on the way": lambda t: torch.where(t.abs() < 100, -0.5 * t.square(), -3 * t.abs().sqrt()),
    "a plateau too low to be met": lambda t: torch.where(t.abs() < 20, 0.0, -800.0).to(t),
}
ENDLESS = {
    "flat": torch.zeros_like,
    "one side": lambda t: torch.nn.functional.logsigmoid(t),
    "slower than 1/t": lambda t: -0.5 * torch.log1p(t.abs()),
}


@pytest.mark.parametrize("name", PROPER)
@pytest.mark.parametrize("coordinates", [DENSE, PLAIN], ids=["linear", "network"])
def test_tails_that_fall_fast_enough_are_quiet(name, coordinates):
    offers = ("exact",) if "valley" in name else ("eta",)  # a linear model is concave, and has none
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_proper(Tails(PROPER[name], offers=offers), coordinates, START, PRIOR)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_linear_model_without_a_posterior_is_an_error(name):
    with pytest.raises(TrainingError, match=r"no posterior to draw from: .* of weight .*priors\.Normal\(1\.0\)"):
        check_proper(Tails(ENDLESS[name]), DENSE, START, PRIOR)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_network_is_warned_of(name):
    with pytest.warns(ApproximationWarning, match=r"The posterior is improper: .* however large weight becomes"):
        check_proper(Tails(ENDLESS[name]), PLAIN, START, PRIOR)


def test_learned_constants_of_a_linear_model_are_warned_of():
    with pytest.warns(ApproximationWarning, match="however large shared becomes"):
        check_proper(Tails(ENDLESS["flat"], ("shared", "other")), DENSE, START, PRIOR)


def test_improper_densities_are_warned_of_and_planes_are_not():
    with pytest.warns(ApproximationWarning, match="however large weight becomes") as said:
        check_proper(Tails(ENDLESS["flat"], offers=("exact",)), DENSE, START, PRIOR)
    assert "plane" not in str(said[0].message)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_normal_prior_of_every_parameter_holds_any_posterior(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_proper(Tails(ENDLESS[name], held=True), DENSE, START, PRIOR)


BRIEF = NUTS(chains=2, draws=20, warmup=50)


@pytest.mark.parametrize(
    "model",
    [
        GaussianMixture(2, inference=BRIEF, prior=Flat()),
        Mixture(Poisson(), 3, inference=BRIEF, prior=Flat()),
        HiddenMarkov(n_states=2, inference=BRIEF, prior=Flat()),
    ],
    ids=repr,
)
def test_components_under_a_flat_prior_are_warned_of_once(model):
    """∫ dφ p(X | φ) = ∞ for the logit φ of a probability that may be 0; separate groups hide it from any walk."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.poisson(2.0, size=(40, 1)), rng.poisson(60.0, size=(40, 1))].astype(float)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        clone(model).set_params(random_state=0).fit(X)
    (text,) = [str(one.message) for one in said if "improper" in str(one.message)]
    assert "while one component has no rows" in text
    assert "Flat() holds neither" in text
    assert "prior=priors.Normal(3.0)" in text


@pytest.mark.parametrize("covariance", ["full", "diag"])
def test_one_component_under_a_flat_prior_has_a_posterior(covariance):
    """That of a Gaussian: its tails in the logarithms of scales are those of a gamma density."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ApproximationWarning)
        model = GaussianMixture(1, covariance=covariance, inference=BRIEF, prior=Flat(), random_state=0).fit(X)
    assert np.isfinite(model.draws_["mean"]).all()


@pytest.mark.parametrize("by", [HMC(chains=2, draws=2, warmup=5), NUTS(chains=2, draws=2, warmup=5)], ids=repr)
def test_a_mixture_under_a_proper_prior_has_a_posterior(by, seed):
    """Along a direction that empties a component, log p falls into a valley and rises again: no false alarm is due."""
    rng = np.random.default_rng(seed)
    X = np.r_[rng.normal(size=(80, 2)), rng.normal(size=(60, 2)) + 4]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ApproximationWarning)
        assert len(GaussianMixture(2, inference=by, random_state=seed).fit(X).draws_["mean"]) == 4
