"""Diffusion models: the bound, what they learn of known densities, conditions, guidance, gaps."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch

import likely
from likely.core.errors import ApproximationWarning, DataError, LikelyWarning, SpecError
from likely.core.random import drawing
from likely.inference import MAP
from likely.inference.objective import RowDensity, able
from likely.inference.training.averaging import EMA
from likely.likelihoods import Normal
from likely.models.generative import DDIM, DDPM, Cosine, Exploding, Heun, Learned, Linear
from likely.models.generative.diffusion import Denoising, Diffusion
from likely.models.generative.gaussian_steps import level_at
from likely.models.generative.observed import columns_of
from likely.models.generative.points import Points
from likely.networks import MLP, UNet
from likely.optim import Adam

ROWS = np.random.default_rng(0).normal([3.0, -1.0], [2.0, 0.5], (400, 2))
QUICK = MAP(Adam(3e-3), epochs=30, batch_size=64, average=EMA(0.98))
SMALL = MLP((32, 32), activation="silu")


def diffusion(**options):
    return Diffusion(
        **{"network": SMALL, "steps": 50, "sampler": DDPM(50), "inference": QUICK, "random_state": 0} | options
    )


class Exact(Denoising):
    """The optimal answer for standard normal rows: x̂₀ = αₜ xₜ / (αₜ² + σₜ²)."""

    def data(self, x, t, told, level=None):
        level = level_at(self.path, t, x.ndim) if level is None else level
        return level.alpha / (level.alpha**2 + level.sigma**2) * x


def exact_module(schedule, steps):
    x = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    settings = {"sampler": DDPM(), "guidance": 1.0, "weighting": "bound", "likelihood": "bound"}
    module = Exact(SMALL, Points(columns_of(Normal(), x), (1,)), (1,), None, "data", schedule, steps, settings)
    return module.double().eval()


@pytest.mark.parametrize("schedule", [Cosine(), Linear(), Learned(), Exploding(0.01, 40.0)])
def test_the_terms_sum_to_a_bound_that_is_tight_for_many_steps(schedule, seed):
    """For N(0, 1) and its exact denoiser the gap to log p falls as steps grow, and never has the other sign.

    A step with SNR(s)/SNR(t) = r costs ½(r − 1) where ½ log r is due; that is all of the gap but the ends.
    """
    rows = torch.tensor([[-1.0], [1.0]], dtype=torch.float64).repeat(4, 1)  # of variance 1, as the density
    log_p = torch.distributions.Normal(0.0, 1.0).log_prob(rows[:, 0])
    gaps, noise = [], 0.0
    for steps in (20, 2000):
        module = exact_module(schedule, steps)
        with torch.no_grad(), drawing(seed):
            bound, error = module.log_prob(rows, None, 500)
        # errors of stratified draws are smaller than the plain ones reported: 6 of these have false alarms < 1e-8
        assert bool((bound < log_p + 6 * error + 1e-6).all())
        gaps.append(float((log_p - bound).mean()))
        noise = 6 * float(error.square().sum().sqrt()) / len(rows)  # of the mean gap
    assert gaps[1] < gaps[0] + noise
    grid = module.path.log_snr(torch.linspace(0, 1, 2001, dtype=torch.float64)).detach()
    ratio = -grid.diff()
    assert gaps[1] < 0.5 * float((ratio.expm1() - ratio).sum()) + 0.1 + noise


@pytest.mark.parametrize("predict", ["noise", "data", "velocity"])
def test_the_score_of_a_gaussian_is_learned(predict):
    """x̂₀ = μ + ασ₀²/(α²σ₀² + σ²)(x − αμ), in the units of the network: here the standard normal's."""
    fitted = diffusion(predict=predict, inference=QUICK.replace(epochs=60)).fit(ROWS)
    module = fitted.posterior_.module
    x = torch.randn(500, 2)
    for time in (0.3, 0.6):
        t = torch.full((500,), time)
        level = level_at(module.path, t, 2)
        with torch.no_grad():
            guess = module.data(level.alpha * x, t, None)
        error = (guess - level.alpha**2 * x).square().mean().sqrt()
        assert float(error) < 0.35


def test_new_rows_have_the_moments_of_the_data():
    fitted = diffusion(inference=QUICK.replace(epochs=60)).fit(ROWS)
    new = fitted.sample(2000, random_state=1)
    np.testing.assert_allclose(new.mean(0), ROWS.mean(0), atol=0.4)
    np.testing.assert_allclose(new.std(0), ROWS.std(0), rtol=0.25)


def test_bound_and_flow_agree_with_the_exact_density():
    """The bound to 5 standard errors of its draws and what so short a training costs, −0.15 to 0.05 in 6 seeds."""
    bound = diffusion(steps=2000, inference=QUICK.replace(epochs=60)).fit(ROWS)
    z = (ROWS - [3.0, -1.0]) / [2.0, 0.5]
    exact = (-0.5 * z**2 - np.log([2.0, 0.5]) - 0.5 * math.log(2 * math.pi)).sum(1)
    value, error = bound.log_prob(ROWS, draws=100, return_error=True)
    assert bound.log_prob_kind_ == "bound"
    assert (error > 0).all()
    assert abs(value.mean() - exact.mean()) < 0.4 + 5 * np.sqrt((error**2).mean() / len(error))
    flow = diffusion(likelihood="flow", inference=QUICK.replace(epochs=60)).fit(ROWS)
    assert flow.log_prob_kind_ == "estimate"
    assert abs(flow.log_prob(ROWS[:100]).mean() - exact[:100].mean()) < 0.3


def test_a_condition_is_heard_and_guidance_is_louder():
    label = np.arange(400) % 2
    shifted = ROWS * [0.2, 1.0] + 4.0 * label[:, None]
    fitted = diffusion(inference=QUICK.replace(epochs=60)).fit(shifted, label)
    gap = fitted.sample(300, 1, random_state=0).mean(0) - fitted.sample(300, 0, random_state=0).mean(0)
    np.testing.assert_allclose(gap, [4.0, 4.0], atol=1.5)
    louder = diffusion(guidance=2.0)
    module = fitted.posterior_.module
    x, t = torch.randn(4, 2), torch.full((4,), 0.5)
    condition = torch.tensor([[0.0, 1.0]]).expand(4, 2)
    with torch.no_grad():
        told = module.told(condition)
        with_, without = module.data(x, t, told), module.data(x, t, torch.zeros_like(told))
        module.fitted["guidance"] = louder.guidance
        guided = module.denoiser(condition, clip=False)(x, t, level_at(module.path, t, 2))
    torch.testing.assert_close(guided, without + 2.0 * (with_ - without))


def test_a_vector_is_a_condition(seed):
    """x = c W + noise, for vectors c such as a text has: draws follow c."""
    rng = np.random.default_rng(seed)
    given = rng.normal(size=(400, 3))
    rows = given @ [[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]] + 0.2 * rng.normal(size=(400, 2))
    fitted = diffusion(inference=QUICK.replace(epochs=60)).fit(rows, given)
    asked = rng.normal(size=(200, 3))
    new = fitted.sample(200, asked, random_state=0)
    # correlations of 0.99 in truth and 0.95 or more after so short a training
    assert all(np.corrcoef(new[:, column], asked[:, column])[0, 1] > 0.85 for column in (0, 1))


def test_sampler_guidance_and_likelihood_may_change_after_the_fit():
    label = np.arange(400) % 2
    quick = MAP(epochs=2, batch_size=64)
    model = diffusion(inference=quick).fit(ROWS, label)
    options = {"sampler": DDIM(7), "guidance": 2.0}
    other = diffusion(inference=quick, **options).fit(ROWS, label)
    new = model.set_params(**options).sample(5, 1, random_state=0)
    np.testing.assert_allclose(new, other.sample(5, 1, random_state=0), rtol=1e-4, atol=1e-4)
    assert model.trajectory(2, 1, random_state=0).shape == (8, 2, 2)
    bound = model.log_prob(ROWS[:5], label[:5])
    flow = model.set_params(likelihood="flow").log_prob(ROWS[:5], label[:5])
    assert not np.allclose(bound, flow)
    with pytest.raises(SpecError, match="guidance=-1 must be a number"):
        model.set_params(guidance=-1).sample(2, 1)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (None, "condition is missing: the model was fitted with one"),
        (np.zeros((2, 3)), r"condition has rows of shape \(3,\); the model was fitted on \(2,\)"),
        (np.zeros((3, 2)), r"condition has 3 rows; it must have 1, or n = 2"),
        (np.full((2, 2), np.nan), "condition has NaN at row 0; numbers of a condition cannot be missing"),
        (np.array([["a", "b"]]), "where numbers are needed"),
    ],
)
def test_a_condition_that_does_not_fit_is_named(condition, message):
    model = diffusion(inference=MAP(epochs=1)).fit(ROWS[:40], ROWS[40:80])
    with pytest.raises(DataError, match=message):
        model.sample(2, condition)


def halved(images):
    """Means of blocks of 2 × 2 pixels."""
    n, channels, height, width = images.shape
    return images.reshape(n, channels, height // 2, 2, width // 2, 2).mean((3, 5))


@pytest.mark.parametrize(("network", "epochs"), [(SMALL, 60), (UNet((8,), norm=None, activation="silu"), 30)])
def test_a_large_image_agrees_with_the_small_one_that_it_was_drawn_for(network, epochs, seed):
    """Super-resolution: blocks of a draw have the means that its condition says, and lie nearer to it than to another.

    Pixels of a made image vary by 0.3 within blocks whose means vary by 1: without the condition, draws would explain
    nothing of it and lie nearer to it in half of the cases. Fits explain 0.89 of it and more: no false alarm in 12.
    """
    rng = np.random.default_rng(seed)
    coarse = rng.normal(size=(300, 1, 3, 3))
    images = np.kron(coarse, np.ones((2, 2))) + 0.3 * rng.normal(size=(300, 1, 6, 6))
    training = QUICK.replace(epochs=epochs)
    model = diffusion(network=network, sampler=DDIM(20), inference=training).fit(images, halved(images))
    asked = rng.normal(size=(200, 1, 3, 3))
    own = halved(model.sample(200, asked, random_state=0))
    misses = [((own - given) ** 2).sum((1, 2, 3)) for given in (asked, np.roll(asked, 1, 0))]
    assert misses[0].mean() < 0.5 * (asked**2).sum((1, 2, 3)).mean()
    assert (misses[0] < misses[1]).mean() > 0.9


def test_an_image_is_of_the_class_that_it_was_drawn_for(seed):
    """Classes are bright quadrants. Without hearing of them a quarter of the draws would agree.

    Fits agree in all of 200 draws, for each of 6 seeds.
    """
    rng = np.random.default_rng(seed)
    quadrants = np.kron(np.eye(4).reshape(4, 1, 2, 2), np.ones((4, 4)))
    labels = rng.integers(0, 4, 240)
    images = quadrants[labels] + 0.3 * rng.normal(size=(240, 1, 8, 8))
    training = MAP(Adam(5e-3), epochs=12, batch_size=32, average=EMA(0.95))
    model = diffusion(network=UNet((8, 16), patch=2), sampler=DDIM(10), inference=training).fit(images, labels)
    asked = np.arange(200) % 4
    draws = model.sample(200, asked, random_state=0)
    read = draws.reshape(200, 2, 4, 2, 4).mean((2, 4)).reshape(200, 4).argmax(1)
    assert (read == asked).mean() > 0.6


def test_gaps_are_filled_given_the_rest(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=500)
    rows = np.column_stack([x, x + 0.1 * rng.normal(size=500)])
    model = diffusion(inference=QUICK.replace(epochs=100), sampler=DDPM(50)).fit(rows)
    asked = np.column_stack([[-1.5, 0.0, 1.5], [np.nan] * 3])
    filled = model.impute(asked, draws=20, random_state=0)
    assert filled.shape == (20, 3, 2)
    np.testing.assert_array_equal(filled[:, :, 0], np.tile(asked[:, 0], (20, 1)))
    np.testing.assert_allclose(filled[:, :, 1].mean(0), asked[:, 0], atol=0.8)


@pytest.mark.parametrize("name", able(RowDensity("Diffusion", "bound", random=True)))
def test_every_inference_of_a_bound_fits_it(name):
    inference = able(RowDensity("Diffusion", "bound", random=True))[name].example()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)
        model = diffusion(network=MLP((1,)), steps=5, sampler=DDIM(2), inference=inference, weighting="bound").fit(
            ROWS[:8]
        )
    assert np.isfinite(model.log_prob(ROWS[:5], draws=2)).all()
    assert np.isfinite(model.sample(3, random_state=0)).all()


@pytest.mark.parametrize("schedule", [Linear(), Learned(4), Exploding()])
@pytest.mark.parametrize("sampler", [Heun(5), DDIM(5, eta=0.5)])
def test_a_file_gives_the_same_answers(schedule, sampler, tmp_path):
    weighting = "bound" if isinstance(schedule, Learned) else "simple"
    model = diffusion(schedule=schedule, sampler=sampler, inference=MAP(epochs=1), weighting=weighting).fit(ROWS)
    model.save(tmp_path / "d.likely")
    again = likely.load(tmp_path / "d.likely")
    np.testing.assert_array_equal(again.sample(4, random_state=0), model.sample(4, random_state=0))
    np.testing.assert_array_equal(again.log_prob(ROWS[:9]), model.log_prob(ROWS[:9]))
    assert model.trajectory(2, random_state=0).shape == (6, 2, 2)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: diffusion(predict="score").fit(ROWS), SpecError, "predict='score' must be one of 'noise', 'data'"),
        (lambda: diffusion(steps=1).fit(ROWS), SpecError, "steps=1 must be an integer from 2 to 1,000,000"),
        (lambda: diffusion(guidance=-1).fit(ROWS), SpecError, "guidance=-1 must be a number, 0 or more"),
        (lambda: diffusion().fit(np.where(ROWS > 3, np.nan, ROWS)), DataError, "Diffusion cannot marginalise"),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_constant_column_is_kept_at_a_small_width_with_a_word():
    with pytest.warns(ApproximationWarning, match="Column 1 of X has one value in all rows"):
        model = diffusion(inference=MAP(epochs=2)).fit(np.column_stack([ROWS[:, 0], np.ones(400)]))
    assert np.isfinite(model.sample(5, random_state=0)).all()
