from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.core.errors import ConvergenceWarning, SpecError, TrainingError
from likely.inference import EM, Inference, Latent, elbo
from likely.inference.latent.density import fit_latent
from likely.inference.latent.em import best_start


class Coins(Latent):
    """Two coins, one drawn for each row at random: x heads in ten throws. The textbook case of EM."""

    def __init__(self, heads, prior=0.0):
        self.heads = torch.tensor(heads, dtype=torch.float64)
        self.count = float(len(heads))
        self.prior = prior
        self.steps = 0

    def start(self, seeds):
        first = [np.random.default_rng(seed).uniform(0.2, 0.8, 2) for seed in seeds]
        return {"heads": torch.tensor(np.array(first))}

    def log_joint(self, params):
        p = params["heads"]  # (S, 2)
        heads = self.heads[:, None, None]
        return heads * p.log() + (10 - heads) * (1 - p).log() + np.log(0.5)

    def expect(self, params):
        joint = self.log_joint(params)
        share = joint.softmax(-1)
        totals = {"heads": (share * self.heads[:, None, None]).sum(0), "throws": 10 * share.sum(0)}
        return totals, joint.logsumexp(-1).sum(0)

    def maximise(self, params, statistics):
        self.steps += 1
        return {"heads": (statistics["heads"] + self.prior) / (statistics["throws"] + 2 * self.prior)}

    def log_prior(self, params):
        p = params["heads"]
        return self.prior * (p.log() + (1 - p).log()).sum(-1)


HEADS = [5, 9, 8, 4, 7, 2, 9, 1]


@pytest.mark.parametrize("prior", [0.0, 3.0])
def test_the_trace_never_falls_and_ends_at_a_maximum(prior):
    model = Coins(HEADS, prior)
    fit = fit_latent(EM(max_iter=2000, tol=1e-15), model, "auto", name="EM", random_state=0)
    assert (fit.trace.diff() >= -1e-12).all()
    assert fit.n_iter == len(fit.trace) - 1
    p = fit.params["heads"].clone().requires_grad_()
    value = model.log_joint({"heads": p.unsqueeze(0)}).logsumexp(-1).sum() + model.log_prior({"heads": p})
    np.testing.assert_allclose(float(value.detach()), float(fit.trace[-1]), rtol=1e-12)
    np.testing.assert_allclose(torch.autograd.grad(value, p)[0], 0, atol=1e-5)


def test_it_stops_when_a_step_gains_less_than_tol_a_row():
    model = Coins(HEADS)
    fit = fit_latent(EM(max_iter=1000, tol=1e-4), model, "auto", name="EM", random_state=0)
    gains = fit.trace.diff() / len(HEADS)
    assert fit.converged
    assert gains[-1] < 1e-4
    assert (gains[:-1] >= 1e-4).all()


def test_too_few_steps_are_said_unless_only_steps_count():
    with pytest.warns(ConvergenceWarning, match=r"coins was still rising after max_iter=2 steps of EM \(the last by "):
        fit = fit_latent(EM(max_iter=2, tol=1e-12), Coins(HEADS), "auto", name="coins", random_state=0)
    assert not fit.converged
    model = Coins(HEADS)
    fit = fit_latent(EM(max_iter=2, tol=0.0), model, "auto", name="EM", random_state=0)
    assert (fit.n_iter, model.steps) == (2, 2)


def test_of_several_starts_the_best_is_kept():
    fit = fit_latent(EM(max_iter=3, tol=0.0, starts=6), Coins(HEADS), "auto", name="EM", random_state=1)
    assert fit.finals.shape == (6,)
    assert len(set(fit.finals.tolist())) == 6
    np.testing.assert_allclose(float(fit.trace[-1]), float(fit.finals.max()), rtol=1e-10)
    best = Coins(HEADS).expect({name: value.unsqueeze(0) for name, value in fit.params.items()})[1]
    np.testing.assert_allclose(float(best), float(fit.finals.max()), rtol=1e-12)


def test_rounding_does_not_choose_a_start():
    assert best_start(torch.tensor([-5.0, -1.0 - 1e-14, -1.0], dtype=torch.float64)) == 1
    assert best_start(torch.tensor([torch.nan, -torch.inf, -2.0], dtype=torch.float64)) == 2


def test_more_starts_have_the_first_ones_among_them():
    few, many = (
        fit_latent(EM(max_iter=2, tol=0.0, starts=starts), Coins(HEADS), "auto", name="EM", random_state=4)
        for starts in (2, 5)
    )
    np.testing.assert_allclose(many.finals[:2], few.finals, rtol=1e-12)


def test_a_likelihood_that_is_no_number_stops_the_fit():
    model = Coins(HEADS)
    model.heads[0] = torch.nan
    with pytest.raises(TrainingError, match="EM came to a log-likelihood of nan"):
        fit_latent(EM(), model, "auto", name="EM", random_state=0)


def test_elbo_is_below_the_evidence_and_meets_it_at_the_posterior():
    rng = np.random.default_rng(0)
    joint = torch.from_numpy(rng.normal(size=(50, 4)))
    evidence = joint.logsumexp(-1)
    q = torch.from_numpy(rng.dirichlet(np.ones(4), size=50))
    kl = (q * (q.log() - (joint - evidence.unsqueeze(-1)))).sum(-1)
    torch.testing.assert_close(elbo(joint, q) + kl, evidence)
    assert (elbo(joint, q) < evidence).all()
    torch.testing.assert_close(elbo(joint, joint.softmax(-1)), evidence)
    certain = torch.eye(4, dtype=torch.float64)  # 0·log 0 = 0
    torch.testing.assert_close(elbo(joint[:4], certain), joint[:4].diagonal())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_iter": 0}, r"EM\(max_iter=0\): max_iter must be an integer above 0"),
        ({"tol": -1.0}, r"EM\(tol=-1.0\): tol must be 0 or a positive number"),
        ({"starts": 0}, r"EM\(starts=0\): starts must be an integer above 0"),
    ],
)
def test_impossible_settings_are_refused(arguments, message):
    with pytest.raises(SpecError, match=message):
        EM(**arguments)


def test_it_is_read_from_text():
    assert Inference.parse("em(max_iter=7, starts=3)") == EM(max_iter=7, starts=3)


# --- more than one process ----------------------------------------------------------------------------------------
SCRIPT = """
import os, sys, warnings
import numpy as np
import torch
torch.set_num_threads(1)
from likely import GaussianMixture, KMeans, Mixture
from likely.core import distributed
from likely.inference import EM
from likely.likelihoods import Normal, Poisson, StudentT

warnings.simplefilter("ignore")
random = np.random.default_rng(0)
X = random.normal(size=(301, 3)) + 2 * (np.arange(301) % 3)[:, None]
holes = np.where(random.random(X.shape) < 0.2, np.nan, X)
weight = random.uniform(0, 2, size=301)
counts = random.poisson(np.exp(0.5 * X))
few = EM(max_iter=12, tol=0.0, starts=2)
answers = {}


def keep(name, model, X, **more):
    model.fit(X, **more)
    names = ("weights_", "means_", "covariances_", "eta_", "history_")
    arrays = [getattr(model, name) for name in names if hasattr(model, name)]
    answers[name] = np.concatenate([np.ravel(a) for a in (*arrays, model.log_prob(X))])


for kind in ("full", "tied", "diag", "spherical"):
    keep(kind, GaussianMixture(3, kind, inference=few, random_state=0), X, sample_weight=weight)
    keep(kind + "/holes", GaussianMixture(3, kind, inference=few, random_state=0), holes)
far = np.array([X[0], X[1], np.full(3, 1e6)])
keep("again", GaussianMixture(3, inference=few, means_init=far), X)
keep("poisson", Mixture(Poisson(), 3, few, random_state=0), counts, sample_weight=weight)
keep("student", Mixture(StudentT(), 2, EM(max_iter=4, tol=0.0), random_state=0), holes)
keep("point", Mixture(Normal(), 2, few, random_state=0), np.concatenate([np.zeros((20, 3)), X]))
answers["unseeded"] = KMeans(4).fit(X).cluster_centers_
"""


def test_two_processes_end_where_one_does(by_processes):
    alone, first, second = by_processes(SCRIPT)
    for name, value in alone.items():
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)
        if name != "unseeded":
            scale = np.abs(value).max()
            np.testing.assert_allclose(first[name], value, rtol=0, atol=1e-8 * scale, err_msg=name)
