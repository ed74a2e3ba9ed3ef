"""How generative models are fitted: what "auto" means, weights, refusals, and what a failed fit leaves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from likely import VAE, Autoregressive, Flow
from likely.core.errors import DataError, SpecError
from likely.inference import HMC, MAP, Exact
from likely.models.generative.fitting import STEPS, _Fitting
from likely.networks import MLP
from likely.optim import SGD, Adam

ROWS = np.random.default_rng(0).normal(size=(40, 2))


def quick(epochs=3):
    whole = MAP(Adam(0.01), epochs=epochs, batch_size=None)
    return Flow("affine", layers=2, network=MLP((4,)), inference=whole, random_state=0)


@pytest.mark.parametrize("rows", [30, 1_000, 50_000])
def test_auto_takes_a_bounded_number_of_steps(rows):
    auto = _Fitting._automatic(Flow(), rows)
    steps = auto.epochs * -(-rows // auto.batch_size)
    assert 0.5 * STEPS <= steps <= max(2 * STEPS, 20 * -(-rows // auto.batch_size) + 1)
    assert (auto.validation is None) == (rows < 200)


@pytest.mark.parametrize(
    "model", [Flow("affine", layers=2, network=MLP((4,))), Autoregressive(network=MLP((4,)))], ids=["flow", "chain"]
)
@pytest.mark.parametrize("form", ["none", "numbers", "table"])
def test_a_weight_of_two_is_a_row_twice(model, form):
    """Full batches, one seed: the same units and gradients, but for rounding.

    Of plain steps: Adam would divide gradients that are 0 at the start, and rounding, by their own size.
    """
    whole = MAP(SGD(0.01), epochs=5, batch_size=None)
    heat = 20 + 5 * ROWS[:, :1] ** 2
    condition = {"none": None, "numbers": heat, "table": pd.DataFrame({"heat": heat[:, 0]})}[form]
    order, weight = np.concatenate([np.arange(40), np.arange(10)]), np.where(np.arange(40) < 10, 2.0, 1.0)
    again = None if condition is None else condition.iloc[order] if form == "table" else condition[order]
    weighted, repeated = (clone(model).set_params(inference=whole, random_state=0) for _ in range(2))
    weighted.fit(ROWS, condition, sample_weight=weight)
    repeated.fit(ROWS[order], again)
    first, second = (own.log_prob(ROWS, condition) for own in (weighted, repeated))
    np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-4)


def test_an_inference_that_cannot_is_refused_in_one_sentence():
    with pytest.raises(SpecError, match=r"HMC .*VAE.* use .*MAP"):
        VAE(inference=HMC()).fit(ROWS)
    with pytest.raises(SpecError, match="Exact"):
        Flow(inference=Exact()).fit(ROWS)


def test_a_failed_fit_leaves_no_half_of_the_last_one():
    model = quick().fit(ROWS)
    with pytest.raises(DataError, match="needs 2 rows or more"):
        model.fit(ROWS[:1])
    assert not hasattr(model, "posterior_")
