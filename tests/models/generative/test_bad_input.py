"""Bad input of generative models: a message that names the argument, what was found and what would do."""

from __future__ import annotations

import numpy as np
import pytest

from likely import GAN, VAE, Autoencoder, Autoregressive, Diffusion, Flow, ScoreModel
from likely.core.errors import ApproximationWarning, DataError, SpecError, TrainingError
from likely.inference import MAP
from likely.models import EnergyModel
from likely.networks import MLP, ConvNet

TINY = {"inference": MAP(epochs=1), "random_state": 0}
MODELS = {
    "Autoregressive": Autoregressive(network=MLP((4,)), **TINY),
    "Flow": Flow("affine", layers=1, network=MLP((4,)), **TINY),
    "VAE": VAE(latent=1, encoder=MLP((4,)), decoder=MLP((4,)), **TINY),
    "Autoencoder": Autoencoder(latent=1, encoder=MLP((4,)), decoder=MLP((4,)), **TINY),
    "Diffusion": Diffusion(MLP((4,)), steps=5, **TINY),
    "ScoreModel": ScoreModel(MLP((4,)), noise_levels=2, steps=2, **TINY),
    "GAN": GAN(MLP((4,)), MLP((4,)), latent=1, **TINY),
    "EnergyModel": EnergyModel(**TINY),
}
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(20, 3))
BITS = (ROWS > 0).astype(float)
CONDITION = RNG.normal(size=(20, 2))
ABLE = "Autoregressive, VAE, Mixture, GaussianMixture, FactorAnalysis and PCA can"
EACH = pytest.mark.parametrize("name", MODELS)
CONDITIONED = [name for name in MODELS if name not in ("EnergyModel", "Autoencoder")]


def rows_of(name):
    return BITS.copy() if name == "EnergyModel" else ROWS.copy()


@EACH
def test_one_row_is_no_sample(name):
    with pytest.raises(DataError, match=f"^{name} needs 2 rows or more; X has 1.$"):
        MODELS[name].fit(rows_of(name)[:1])


@EACH
def test_a_column_without_a_value_and_infinity_are_named(name):
    rows = rows_of(name)
    rows[3, 1] = np.inf
    with pytest.raises(DataError, match=r"X contains infinity \(inf\) at row 3, column 1"):
        MODELS[name].fit(rows)
    empty = np.column_stack([rows_of(name), np.full(20, np.nan)])
    with pytest.raises(DataError, match=f"Column 3 of X has no value in any row; leave it out|{name} cannot marginal"):
        MODELS[name].fit(empty)


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("Autoregressive", "VAE", "Autoencoder")])
def test_gaps_are_refused_with_the_names_of_those_who_take_them(name):
    rows = rows_of(name)
    rows[3, 1] = np.nan
    message = f"X has missing values, and {name} cannot marginalise over them; {ABLE}"
    with pytest.raises(DataError, match=message + ". Or fill them first"):
        MODELS[name].fit(rows)
    model = MODELS[name].fit(rows_of(name))
    if hasattr(model, "log_prob"):
        with pytest.raises(DataError, match=message):
            model.log_prob(rows)


@pytest.mark.parametrize("name", ["Autoregressive", "VAE"])
def test_a_value_outside_the_support_is_named(name):
    model = MODELS[name]
    with pytest.raises(DataError, match=r"column '0' of X has a value that is not an integer .*\); Poisson needs"):
        type(model)(**model.get_params(deep=False) | {"likelihood": "poisson()"}).fit(np.abs(ROWS))
    fitted = type(model)(**model.get_params(deep=False) | {"likelihood": "poisson()"}).fit(BITS)
    with pytest.raises(DataError, match=r"column '1' of X has a negative value \(-1.0 at row 0\); Poisson needs"):
        fitted.log_prob([[0.0, -1.0, 2.0]])


def test_an_energy_model_of_bits_says_so():
    with pytest.raises(DataError, match="Bernoulli needs labels 0 and 1"):
        MODELS["EnergyModel"].fit(ROWS)


@pytest.mark.parametrize("name", CONDITIONED)
def test_a_condition_that_is_missing_or_of_another_shape_is_named(name):
    model = MODELS[name].fit(ROWS, condition=CONDITION)
    with pytest.raises(DataError, match="condition is missing: the model was fitted with one"):
        model.sample(2)
    with pytest.raises(DataError, match=r"condition has rows of shape \(3,\); the model was fitted on \(2,\)"):
        model.sample(2, condition=np.zeros((1, 3)))
    with pytest.raises(DataError, match=r"condition has 3 rows; it must have 1, or n = 2"):
        model.sample(2, condition=np.zeros((3, 2)))
    with pytest.raises(DataError, match=r"condition has 'a' where numbers are needed"):
        model.sample(2, condition=["a", "b"])
    with pytest.raises(DataError, match="condition has 5 rows, but X has 20"):
        MODELS[name].fit(ROWS, condition=CONDITION[:5])


@pytest.mark.parametrize("name", CONDITIONED)
def test_columns_that_cannot_be_held_are_named(name):
    model = MODELS[name].fit(ROWS)
    with pytest.raises(DataError, match=r"condition has rows of shape \(2,\); the model was fitted on \(3,\)"):
        model.sample(2, condition=np.zeros((1, 2)))
    with pytest.raises(DataError, match="condition names a column 'a'; the model has columns 0 to 2"):
        model.sample(2, condition={"a": 1.0})
    with pytest.raises(DataError, match="n=0: how many to draw must be an integer above 0"):
        model.sample(0)


@pytest.mark.parametrize("name", ["Diffusion", "ScoreModel"])
def test_a_constant_column_is_held_at_a_width_and_said(name):
    """Its integers would be spread over their unit by a flow, and rounded ones have probabilities in a chain."""
    with pytest.warns(ApproximationWarning, match="Column 3 of X has one value in all rows: its density has no bound"):
        MODELS[name].fit(np.column_stack([ROWS, np.full(20, 0.123456)]))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "EnergyModel"])
def test_divergence_says_the_step_and_what_to_try(name):
    model = MODELS[name]
    wild = type(model)(**model.get_params(deep=False) | {"inference": MAP("sgd(1e9)", epochs=20)})
    with pytest.raises(TrainingError, match=r"at step \d+ \(epoch \d+\) with learning rate 1e\+09. Try a smaller"):
        wild.fit(1e6 * ROWS)


@pytest.mark.parametrize(("name", "part"), [("VAE", "encoder"), ("Autoencoder", "encoder"), ("GAN", "critic")])
def test_images_too_small_for_the_network_are_named(name, part):
    model = MODELS[name]
    with pytest.raises(SpecError, match=r"ConvNet\(.*\) needs 8 × 8 pixels or more; found rows of shape \(1, 2, 2\)"):
        type(model)(**model.get_params(deep=False) | {part: ConvNet((4, 8, 16))}).fit(RNG.normal(size=(20, 1, 2, 2)))
