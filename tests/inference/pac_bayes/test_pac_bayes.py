"""PAC-Bayes training: its bound holds on new rows and says something."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.distributions import Normal as TorchNormal
from torch.distributions import kl_divergence

import likely
from likely import Classifier, Regressor
from likely.core.errors import ApproximationWarning, SpecError
from likely.inference.log_posterior import LogPosterior
from likely.inference.pac_bayes.bound import kl_inverse, pac_bayes_bound
from likely.inference.pac_bayes.pac_bayes import PACBayes, _Gaussian
from likely.likelihoods import Normal, Poisson
from likely.networks import MLP
from likely.optim import Adam
from likely.priors import Normal as NormalPrior

QUICK = PACBayes(optimizer=Adam(0.1), steps=20, checks=200, draws=20)


def labelled(rng, rows, noise=0.1, columns=2):
    X = rng.normal(size=(rows, columns))
    return X, (X[:, 0] > 0) ^ (rng.random(rows) < noise)


def test_the_bound_holds_in_95_of_100_runs(seed):
    """Labels x₁ > 0 flipped with probability 0.1; members are draws of q, whose mean error is the randomised one's.

    A run may miss with probability 0.05. These bounds are looser: they lie 0.36 ± 0.03 above the error, so that not one
    miss is by chance; nor is a mean of 0.57 ± 0.04/√100 above 0.6, 7 standard errors away.
    """
    held, bounds = 0, []
    for run in range(100 * seed, 100 * seed + 100):
        rng = np.random.default_rng(run)
        X, y = labelled(rng, 100)
        model = Classifier(inference=QUICK, random_state=run).fit(X, y)
        new, target = labelled(rng, 2_000)
        eta = model.posterior_.eta(torch.from_numpy(new).float())[..., 0].numpy()  # (members, n)
        error = np.mean((eta > 0) != target)
        held += error <= model.posterior_.info["bound"]
        bounds.append(model.posterior_.info["bound"])
    assert held >= 95
    assert np.mean(bounds) < 0.6


def test_the_bound_is_far_below_1(rng):
    X, y = labelled(rng, 1_000, noise=0.0, columns=5)
    info = Classifier(inference=PACBayes(steps=300), random_state=0).fit(X, y).posterior_.info
    assert info["empirical"] < info["bound"] < 0.15
    assert info["rows"] == 1_000


def test_a_network_has_a_bound_below_1_too(rng):
    X = rng.normal(size=(1_000, 2))
    y = X[:, 0] * X[:, 1] > 0
    model = Classifier(network=MLP((16,)), inference=PACBayes(steps=500, checks=500), random_state=0).fit(X, y)
    assert model.posterior_.info["bound"] < 0.5
    assert model.score(X, y) > 0.9


def test_the_bound_is_made_of_what_is_reported(rng):
    """With a given scale there is no price for choosing one."""
    X, y = labelled(rng, 200)
    info = (
        Classifier(inference=PACBayes(prior_scale=1.0, steps=50, checks=300), random_state=0).fit(X, y).posterior_.info
    )
    empirical = kl_inverse(info["empirical"], math.log(1 / 0.01) / 300)
    assert info["bound"] == pytest.approx(pac_bayes_bound(empirical, info["kl"], 200, 0.04), rel=1e-9)


def test_training_lowers_the_bound(rng):
    X, y = labelled(rng, 500)
    bounds = [
        Classifier(inference=PACBayes(steps=steps, checks=500), random_state=0).fit(X, y).posterior_.info["bound"]
        for steps in (1, 200)
    ]
    assert bounds[1] < bounds[0] - 0.1


def test_kl_is_that_of_torch(rng):
    start, mean, scale = (torch.from_numpy(rng.normal(size=7)) for _ in range(3))
    given = torch.full((7,), 0.6, dtype=torch.float64)
    q = _Gaussian(start, given, mean, scale, torch.zeros(()))
    wanted = kl_divergence(TorchNormal(mean, scale.exp()), TorchNormal(start, given)).sum()
    assert float(q.kl()) == pytest.approx(float(wanted), rel=1e-12)


def test_a_learned_scale_is_on_the_grid_and_paid_for():
    given = torch.tensor([math.nan, math.nan])
    q = _Gaussian(torch.zeros(2), given, torch.zeros(2), torch.zeros(2), torch.tensor(math.log(0.23)))
    settled = q.settled()
    j = round((math.log(10) - float(settled.log_prior)) / 0.1)
    assert j == round(math.log(10 / 0.23) / 0.1)
    assert settled.price == pytest.approx(math.log(math.pi**2 * j**2 / 6))
    shares = [6 / (math.pi**2 * k**2) for k in range(1, 100_000)]
    assert sum(shares) == pytest.approx(1, abs=1e-4)


def test_the_prior_of_the_weights_gives_its_scale(rng, problem_of):
    """λ is that of a normal prior where there is one, else the one given, else NaN: to be learned."""
    X, y = labelled(rng, 20)
    network = LogPosterior(problem_of(Classifier(prior=NormalPrior(0.3)), X, y))
    assert _Gaussian.at(network, 2.0).given.tolist() == pytest.approx([0.3, 0.3, 2.0])  # two weights and the bias
    assert _Gaussian.at(network, None).given.isnan().tolist() == [False, False, True]


def test_a_narrow_prior_holds_the_weights(rng):
    X, y = labelled(rng, 200)
    tight, wide = (
        Classifier(inference=PACBayes(scale, steps=60, checks=20), random_state=0).fit(X, y).posterior_.parameters
        for scale in (1e-3, 1.0)
    )
    sizes = [float(parameters["network.weight"].abs().max()) for parameters in (tight, wide)]
    assert sizes[0] < 0.05 * sizes[1]


def test_the_start_does_not_depend_on_the_labels(rng):
    """The same rows with other labels have the same θ₀: after no learning to speak of, the same members."""
    X, y = labelled(rng, 60)
    still = PACBayes(prior_scale=1e-6, steps=1, checks=2, draws=3, optimizer="adam(1e-12)")
    members = [
        Classifier(network=MLP((4,)), inference=still, random_state=0).fit(X, labels).posterior_
        for labels in (y, np.arange(60) < 5)
    ]
    for name, value in members[0].parameters.items():
        torch.testing.assert_close(value, members[1].parameters[name], rtol=0, atol=1e-5)
    torch.testing.assert_close(members[0].buffers["offset"], members[1].buffers["offset"])


@pytest.mark.parametrize("likelihood", [Normal(), Poisson()], ids=repr)
def test_other_targets_have_a_bound_on_a_bounded_loss(rng, likelihood):
    """A tenth of the rows sets the baseline, and new rows of the same kind obey the bound."""

    def data(rows):
        X = rng.normal(size=(rows, 2))
        return X, rng.poisson(np.exp(X[:, 0])).astype(float)

    X, y = data(400)
    model = Regressor(likelihood, inference=PACBayes(steps=200, checks=300), random_state=0).fit(X, y)
    info = model.posterior_.info
    assert info["rows"] == 360
    assert info["empirical"] < info["bound"] < 1
    assert info["empirical"] < 0.5


def test_missing_targets_do_not_count(rng):
    X, y = labelled(rng, 100)
    labels = np.where(np.arange(100) < 30, -1, y.astype(int))
    model = Classifier(inference=QUICK, random_state=0, missing_label=-1).fit(X, labels)
    assert model.posterior_.info["rows"] == 70


def test_save_and_load(rng, tmp_path):
    X, y = labelled(rng, 80)
    model = Classifier(inference=QUICK, random_state=0).fit(X, y)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.posterior_.info == model.posterior_.info


def test_statistics_of_the_rows_are_said_to_break_the_bound(rng):
    X, y = labelled(rng, 60)
    with pytest.warns(ApproximationWarning, match="bound need not hold"):
        Classifier(network=MLP((4,), norm="batch"), inference=PACBayes.example(), random_state=0).fit(X, y)


def test_digits_have_a_bound_that_says_something():
    X, y = load_digits(n_class=2, return_X_y=True)
    model = Classifier(inference=PACBayes(steps=400), random_state=0).fit(X[:300] / 16, y[:300])
    assert model.posterior_.info["bound"] < 0.3
    assert 1 - model.score(X[300:] / 16, y[300:]) <= model.posterior_.info["bound"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"prior_scale": 0.0}, "prior_scale"),
        ({"delta": 1.0}, "delta"),
        ({"steps": 0}, "steps"),
        ({"batch_size": 0}, "batch_size"),
        ({"optimizer": "lbfgs()"}, "noisy gradients"),
    ],
)
def test_bad_specs(options, text):
    with pytest.raises(SpecError, match=text):
        PACBayes(**options)
