from __future__ import annotations

import numpy as np
import pytest

from likely import Classifier, Regressor
from likely.inference import MAP, Exact, Newton, automatic
from likely.inference.training.cross_fit import _CrossFit
from likely.likelihoods import Chain, Normal, Poisson, StudentT
from likely.networks import MLP
from likely.optim import LBFGS
from likely.priors import Laplace, PerLayer, Prior
from likely.priors import Normal as NormalPrior


class _Own(Prior):
    """A density and nothing else."""

    def log_prob(self, parameters):
        return -sum(value.square().sum() for value in parameters.values())


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (Regressor(), Exact),
        (Regressor(Normal(scale=2.0), prior=NormalPrior(1.0)), Exact),
        (Regressor(prior=Laplace(1.0)), Newton),
        (Regressor(prior=PerLayer({"weight": NormalPrior(1.0)})), Exact),
        (Regressor(Normal(scale="input")), Newton),
        (Regressor(Poisson()), Newton),
        (Regressor(StudentT()), Newton),
        (Classifier(), Newton),
        (Regressor(prior=_Own()), MAP),
        (Regressor(network=MLP((4,))), _CrossFit),
        (Classifier(network=MLP((4,))), _CrossFit),
    ],
    ids=repr,
)
def test_the_exact_method_where_there_is_one_then_the_convex_one(model, kind, rng, problem_of):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    assert type(automatic(problem_of(model, X, y))) is kind


def test_many_parameters_are_left_to_first_order_methods(rng, problem_of):
    X, y = rng.normal(size=(6, 2500)), np.arange(6) % 2
    chosen = automatic(problem_of(Classifier(), X, y))
    assert isinstance(chosen.optimizer, LBFGS)
    assert chosen.batch_size is None
    assert automatic(problem_of(Classifier(prior=Laplace(1.0)), X, y)) == MAP()


def test_a_linear_model_whose_positions_are_coupled_descends_to_its_optimum():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3, 2)), rng.integers(2, size=(20, 3))
    model = Classifier(Chain(), prior="normal(1.0)").fit(X, y)
    assert model.posterior_.single
    assert model.posterior_.info["history"]["loss"][-1] <= model.posterior_.info["history"]["loss"][0]
