"""The draws of chains as a posterior: predictions, ArviZ, files, and whether chains agree."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import likely
from likely import Classifier, Regressor, priors
from likely.core.errors import ModelFileError
from likely.core.files import read_file, write_file
from likely.inference import HMC, NUTS, MetropolisHastings
from likely.inference.mcmc.draws import ChainPosterior
from likely.likelihoods import Normal
from likely.networks import MLP
from likely.sampling.convergence import diagnose

pytestmark = pytest.mark.filterwarnings("ignore:The chains do not agree")  # short runs may say so of the posterior
PROPER = priors.Normal(1.0, biases=priors.Normal(1.0))


@pytest.fixture
def data(rng):
    X = rng.normal(size=(20, 2))
    return X, X.sum(1) + 0.5 * rng.normal(size=20)


@pytest.fixture
def model(data):
    return Regressor(Normal(0.5), prior=PROPER, inference=HMC(4, 30, 40), random_state=0).fit(*data)


def test_predictions_average_over_all_draws(model, data):
    posterior = model.posterior_
    assert isinstance(posterior, ChainPosterior)
    weight, bias = posterior.parameters["network.weight"][:, 0], posterior.parameters["network.bias"]
    eta = torch.as_tensor(data[0]) @ weight.T + bias[:, 0]
    np.testing.assert_allclose(model.predict(data[0]), eta.mean(1), rtol=1e-10)
    variance = 0.25 + eta.var(1, correction=0)
    np.testing.assert_allclose(model.predict_dist(data[0]).variance, variance, rtol=1e-8)
    np.testing.assert_allclose(posterior.weights, 1 / 120)


def test_members_are_chain_after_chain(model, data):
    """log p of every draw, computed anew, is what was recorded for its chain and step, up to one constant."""
    posterior = model.posterior_
    x, y = (torch.as_tensor(values) for values in data)
    weight, bias = posterior.parameters["network.weight"][:, 0], posterior.parameters["network.bias"]
    eta = x @ weight.T + bias[:, 0]
    log_p = -(y.unsqueeze(1) - eta).square().sum(0) / 0.5 - 0.5 * (weight.square().sum(1) + bias[:, 0].square())
    gap = posterior.log_prob.flatten() - log_p
    np.testing.assert_allclose(gap, gap[0].item(), rtol=1e-9, atol=1e-9)


def test_arviz_has_parameters_and_statistics_by_name(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        data = model.posterior_.to_arviz()
    assert data.posterior["network.weight"].shape == (4, 30, 1, 2)
    assert data.posterior["network.bias"].shape == (4, 30, 1)
    assert {"lp", "diverging", "energy", "acceptance_rate", "step_size", "n_steps"} <= set(data.sample_stats)
    assert data.sample_stats["diverging"].dtype == bool
    np.testing.assert_array_equal(data.sample_stats["lp"], model.posterior_.log_prob)
    draws = model.posterior_.parameters["network.weight"].unflatten(0, (4, 30))
    np.testing.assert_array_equal(data.posterior["network.weight"], draws)


@pytest.mark.parametrize(
    ("inference", "network"),
    [(HMC(2, 5, 10), None), (NUTS(2, 5, 10, max_depth=3), MLP((3,), "tanh")), (MetropolisHastings(2, 5, 10, 1), None)],
    ids=["HMC", "NUTS", "MetropolisHastings"],
)
def test_files_keep_everything(inference, network, data, tmp_path):
    more = {} if network is None else {"network": network}
    model = Regressor(prior=PROPER, inference=inference, random_state=0, **more).fit(*data)
    model.save(tmp_path / "model.likely")
    loaded = likely.load(tmp_path / "model.likely")
    ours, theirs = model.posterior_, loaded.posterior_
    assert isinstance(theirs, ChainPosterior)
    assert ours.info == theirs.info
    assert ours.drawn == theirs.drawn
    assert torch.equal(ours.log_prob, theirs.log_prob)
    assert ours.stats.keys() == theirs.stats.keys()
    assert all(torch.equal(value, theirs.stats[name]) for name, value in ours.stats.items())
    np.testing.assert_array_equal(model.predict(data[0]), loaded.predict(data[0]))


def test_a_file_with_other_chains_is_refused(model, tmp_path):
    model.save(tmp_path / "model.likely")
    header, tensors = read_file(tmp_path / "model.likely")
    header.pop("format")
    write_file(tmp_path / "bad.likely", header, tensors | {"log_prob": tensors["log_prob"][:, :-1]})
    with pytest.raises(ModelFileError, match="its draws are not those of its chains"):
        likely.load(tmp_path / "bad.likely")


def test_labels_average_probabilities(rng):
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] + rng.normal(size=40) > 0).astype(int)
    model = Classifier(prior=PROPER, inference=HMC(4, 30, 40), random_state=0).fit(X, y)
    eta = model.posterior_.eta(torch.as_tensor(X))[..., 0]
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], eta.sigmoid().mean(0), rtol=1e-8)


# --- agreement ------------------------------------------------------------------------------------------------------
def test_networks_are_judged_by_what_they_predict(data):
    """Units can be exchanged, so that chains may disagree about weights: R-hat is that of log p and of η at 16 rows."""
    X, y = data
    by = HMC(12, 40, 30, max_steps=8)
    posterior = Regressor(Normal(0.5), MLP((2,), "tanh"), PROPER, by, random_state=0).fit(X, y).posterior_
    rows = torch.linspace(0, 19, 16).round().long()
    eta = posterior.eta(torch.from_numpy(X[rows]))[..., 0].unflatten(0, (12, 40))
    rhat, _ = diagnose(torch.cat([posterior.log_prob.unsqueeze(-1), eta], -1).numpy())
    assert posterior.info["rhat"] == pytest.approx(rhat.max(), rel=1e-6)
    assert posterior.info["rhat_of"] == ["log p", *(f"η at row {row}" for row in rows)][rhat.argmax()]
