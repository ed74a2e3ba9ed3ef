"""VAE: bounds on a model that is fitted, the linear case, gaps, conditions, groups, levels, images, every inference."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import polars as pl
import pytest
import torch
from torch.distributions import Distribution, MultivariateNormal

import likely
from likely import PCA, VAE, FactorAnalysis
from likely.core.checkpoint import Checkpoint
from likely.core.errors import DataError, SpecError
from likely.core.random import isolated
from likely.data.augment import Binarise
from likely.inference import HMC, MAP, Ensemble
from likely.inference.objective import RowDensity, able
from likely.likelihoods import Bernoulli, Normal
from likely.models.generative.bounds import ELBO, IWAE
from likely.models.generative.latent_priors import Flow, Mixture
from likely.networks import MLP, ConvNet
from likely.optim import Adam, Cosine

RNG = np.random.default_rng(0)
PLANE = RNG.normal(size=(300, 2)) @ RNG.normal(size=(2, 4)) + 0.3 * RNG.normal(size=(300, 4)) + [5.0, 0.0, -2.0, 1.0]
GROUP = np.arange(300) % 2
BLOBS = RNG.normal(size=(300, 2)) + np.where(GROUP, 4.0, -4.0)[:, None]
QUICK = MAP(Adam(0.01), epochs=40)


def small(**options):
    given = {"latent": 2, "encoder": MLP((8,)), "decoder": MLP((8,)), "inference": QUICK, "random_state": 0}
    return VAE(**given | options)


@pytest.fixture(scope="module")
def fitted():
    return small().fit(PLANE)


# --- bounds -----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def linear():
    """A linear decoder, whose log p is known; q is not p(z | x)."""
    return small(decoder=MLP(()), inference=MAP(Adam(0.01), epochs=40)).fit(PLANE)


def exact_log_prob(module, rows):
    """log N(x; b, WWᵀ + σ²) with W, b and σ of a linear decoder."""
    with torch.no_grad():
        out = module.decoded(torch.cat([torch.zeros(1, 2), torch.eye(2)]).unsqueeze(1), None)[:, 0]
        given = module.observed.parts[0].likelihood.distribution(module.observed.eta(out)[0])
    mean, scale = given.mean.double(), given.stddev[0].double()
    directions = mean[1:] - mean[0]
    known = MultivariateNormal(mean[0], directions.T @ directions + torch.diag(scale**2))
    return known.log_prob(torch.as_tensor(rows)).numpy()


def bounds_of(module, bound, rows):
    """What training raises, for rows of one table after another."""
    old, module.bound = module.bound, bound
    with torch.no_grad():
        values = module(torch.as_tensor(rows, dtype=torch.float32)).double().numpy()
    module.bound = old
    return values


def test_elbo_is_below_iwae_which_rises_to_the_exact_log_p(linear, seed):
    """Means over 300 rows of 40 independent bounds; each step is above 5 standard errors, none is 5 above log p."""
    module, truth = linear.posterior_.module_of(0), exact_log_prob(linear.posterior_.module_of(0), PLANE)
    rows = np.tile(PLANE, (40, 1))
    with isolated(seed):
        values = [bounds_of(module, bound, rows).reshape(40, 300) for bound in (ELBO(), IWAE(5), IWAE(50))]
    means = [value.mean() for value in values]
    errors = [np.sqrt((value.var(0, ddof=1) / 40).mean() / 300) for value in values]
    for low, high in itertools.pairwise(range(3)):
        assert means[high] - means[low] > 5 * np.hypot(errors[high], errors[low])
    assert means[-1] < truth.mean() + 5 * errors[-1]
    value, error = linear.log_prob(PLANE, draws=5_000, return_error=True)
    assert value.mean() == pytest.approx(truth.mean(), abs=6 * np.sqrt((error**2).mean() / len(error)) + 0.005)


def test_both_forms_of_the_elbo_have_one_mean(fitted, seed):
    """The divergence in closed form or from draws: 8,000 bounds of 5 rows each, equal within 5 standard errors."""
    module = fitted.posterior_.module_of(0)
    rows = np.repeat(PLANE[:5], 8_000, 0)
    with isolated(seed):
        closed, drawn = (bounds_of(module, ELBO(kl=kl), rows).reshape(5, -1) for kl in ("analytic", "draws"))
    error = np.sqrt((closed.var(1, ddof=1) + drawn.var(1, ddof=1)) / 8_000)
    assert (abs(closed.mean(1) - drawn.mean(1)) < 5 * error).all()  # 1 false alarm in 300,000
    assert (closed.std(1) != drawn.std(1)).all()  # they are two ways


@pytest.mark.parametrize(("likelihood", "peer"), [("known", PCA(1)), ("learned", FactorAnalysis(1, random_state=0))])
def test_a_linear_vae_reaches_the_linear_models_likelihood(likelihood, peer):
    """With one noise for all columns that of probabilistic PCA, with one for each that of factor analysis."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 1)) * [2.0, -2.0, 1.0] + rng.normal(size=(300, 3))
    peer.fit(rows)
    noise = Normal(float(np.sqrt(peer.noise_variance_))) if likelihood == "known" else Normal()
    training = MAP(Adam(0.1), epochs=400, batch_size=None, schedule=Cosine())
    model = VAE(noise, 1, MLP(()), MLP(()), bound=ELBO(draws=4), inference=training, random_state=0).fit(rows)
    value, error = model.log_prob(rows, draws=500, return_error=True)
    assert value.mean() == pytest.approx(peer.score(rows), abs=0.02)
    assert value.mean() < peer.score(rows) + 6 * np.sqrt((error**2).mean() / len(error)) + 1e-3


def test_the_default_does_not_learn_few_rows_by_heart():
    """120 rows of N(0, I) in 5 dimensions: log p of 1,000 others is within 1 nat of the truth, −7.1 on average."""
    rows = np.random.default_rng(2).normal(size=(1_120, 5))
    model = VAE("auto", 4, MLP((32,)), MLP((32,)), random_state=0).fit(rows[:120])
    truth = -0.5 * (rows[120:] ** 2).sum(1).mean() - 2.5 * np.log(2 * np.pi)
    assert model.score(rows[120:]) > truth - 1.0


def test_more_draws_raise_log_prob_and_lower_its_error(fitted):
    few, wide = fitted.log_prob(PLANE, draws=10, return_error=True)
    many, narrow = fitted.log_prob(PLANE, draws=1000, return_error=True)
    assert narrow.mean() < wide.mean()
    assert many.mean() > few.mean() - 6 * np.sqrt((wide**2).mean() / len(wide))
    np.testing.assert_array_equal(many, fitted.log_prob(PLANE, draws=1000))


# --- codes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("options", [{}, {"levels": 2}, {"latent_prior": Flow(2, hidden=8)}, {"bound": IWAE(3)}])
def test_codes_go_there_and_back(options):
    model = small(**options).fit(PLANE)
    codes = model.transform(PLANE)
    posterior = model.posterior(PLANE)
    assert codes.shape == (300, 2)
    assert isinstance(posterior, Distribution)
    np.testing.assert_allclose(posterior.mean, codes, atol=1e-6)
    np.testing.assert_allclose(model.inverse_transform(codes), model.reconstruct(PLANE))
    path = model.interpolate(PLANE[0], PLANE[1], 5)
    np.testing.assert_allclose(path[[0, -1]], model.reconstruct(PLANE[:2]), rtol=1e-4, atol=1e-4)
    rows, hidden = model.sample(6, random_state=0, return_hidden=True)
    assert rows.shape == (6, 4)
    assert hidden.shape == (6, 2)
    assert np.isfinite(model.log_prob(PLANE)).all()


def test_several_members_have_a_mixture_of_codes():
    model = small(inference=Ensemble(2, by=MAP(epochs=2))).fit(PLANE)
    assert model.posterior(PLANE).mean.shape == (300, 2)
    assert model.log_prob(PLANE).shape == (300,)


# --- gaps -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("with_gaps", [True, False])
def test_gaps_are_filled_better_than_by_means(with_gaps):
    """Trained with gaps (an encoder that is told) or without (a chain); the second column follows from the others."""
    rng = np.random.default_rng(1)
    plane = rng.normal(size=(400, 1)) * [1.0, 2.0, -1.0] + 0.1 * rng.normal(size=(400, 3))
    holes = plane.copy()
    holes[rng.random(plane.shape) < 0.15] = np.nan
    model = small(latent=1, inference=MAP(Adam(0.01), epochs=150)).fit(holes if with_gaps else plane)
    gaps = np.isnan(holes)
    error = np.sqrt(((model.impute(holes) - plane)[gaps] ** 2).mean())
    assert error < 0.6 * np.sqrt((plane[gaps] ** 2).mean())
    assert np.isfinite(model.log_prob(holes)).all()
    draws = model.impute(holes, draws=3, random_state=0)
    np.testing.assert_array_equal(draws[:, ~gaps], np.stack([holes[~gaps]] * 3))


def test_a_table_of_text_numbers_and_gaps_comes_back_as_one():
    table = pl.DataFrame(
        {
            "size": [None if i % 7 == 0 else float(BLOBS[i, 0]) for i in range(300)],
            "colour": [None if i % 11 == 0 else ("red" if GROUP[i] else "blue") for i in range(300)],
            "kind": [("x", "y", "z")[i % 3] for i in range(300)],
        }
    )
    model = small(inference=MAP(Adam(0.02), epochs=200)).fit(table)
    filled = model.impute(table)
    assert filled.columns == table.columns
    assert filled.null_count().sum_horizontal().item() == 0
    known = [i for i in range(300) if i % 11 == 0 and i % 7]
    right = np.mean([filled["colour"][i] == ("red" if GROUP[i] else "blue") for i in known])
    assert right > 0.8  # size tells the colour
    large = model.sample(200, {"size": 4.0}, random_state=0)
    assert large["size"].to_list() == [4.0] * 200
    assert (large["colour"] == "red").mean() > 0.7


# --- conditions and groups --------------------------------------------------------------------------------------------
def test_a_condition_moves_the_rows():
    model = small(inference=MAP(Adam(0.01), epochs=80)).fit(BLOBS, GROUP)
    assert model.sample(300, 1, random_state=0).mean() > 2 > -2 > model.sample(300, 0, random_state=0).mean()
    assert model.log_prob(BLOBS, GROUP).mean() > model.log_prob(BLOBS, 1 - GROUP).mean() + 5
    assert (model.predict(BLOBS) == GROUP).mean() > 0.95  # by Bayes' rule


def test_missing_labels_are_summed_out():
    labels = np.array([str(group) if i < 20 else None for i, group in enumerate(GROUP)], dtype=object)
    model = small(latent=1, classifier=MLP((8,)), inference=MAP(Adam(0.01), epochs=80)).fit(BLOBS, labels)
    assert (model.predict(BLOBS) == GROUP.astype(str)).mean() > 0.95
    np.testing.assert_allclose(model.predict_proba(BLOBS).sum(1), 1.0, rtol=1e-5)
    parts = np.stack([model.log_prob(BLOBS, [name] * 300, draws=500) for name in ("0", "1")])
    total = np.logaddexp.reduce(parts + np.log([[0.5], [0.5]]), 0)
    np.testing.assert_allclose(model.log_prob(BLOBS, draws=500), total, atol=1.0)
    assert abs(model.log_prob(BLOBS, draws=500).mean() - total.mean()) < 0.1
    assert model.transform(BLOBS).shape == (300, 1)
    drawn = model.sample(300, [None], random_state=0)
    assert 0.25 < (drawn[:, 0] > 0).mean() < 0.75
    holes = BLOBS.copy()
    holes[:50, 1] = np.nan
    assert np.abs(model.impute(holes)[:50, 1] - BLOBS[:50, 1]).mean() < 2.5


def test_a_mixture_prior_finds_the_groups():
    model = small(latent_prior=Mixture(2, pretrain=100)).fit(BLOBS)
    groups = model.predict(BLOBS)
    right = (groups == GROUP).mean()
    assert max(right, 1 - right) > 0.95
    assert model.predict_proba(BLOBS).shape == (300, 2)
    assert not hasattr(small().fit(BLOBS), "predict")


# --- images -----------------------------------------------------------------------------------------------------------
def test_images_of_grey_pixels_are_drawn_anew_in_each_batch():
    grey = np.clip(0.5 + 0.4 * np.sin(np.arange(64) / 9.0 + 6 * RNG.random((60, 1))), 0, 1).reshape(60, 1, 8, 8)
    training = MAP(epochs=3, augment=Binarise())
    model = small(likelihood=Bernoulli(), encoder=ConvNet((4,), hidden=()), inference=training).fit(grey)
    new = model.sample(3, random_state=0)
    assert new.shape == (3, 1, 8, 8)
    assert set(np.unique(new)) <= {0.0, 1.0}
    assert model.transform((grey > 0.5).astype(float)).shape == (60, 2)


# --- inferences, files ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(able(RowDensity("VAE", "bound", random=True))))
def test_every_inference_that_takes_a_bound_fits_it(name, tmp_path):
    inference = able(RowDensity("VAE", "bound", random=True))[name].example()
    model = small(encoder=MLP((3,)), decoder=MLP((3,)), inference=inference, prior=likely.priors.Normal(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few steps
        model.fit(PLANE[:40], sample_weight=np.ones(40))
    value = model.log_prob(PLANE[:40])
    assert np.isfinite(value).all()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(likely.load(tmp_path / "model").log_prob(PLANE[:40]), value)


@pytest.mark.parametrize("options", [{"latent_prior": Mixture(2, pretrain=1)}, {"levels": 2}])
def test_a_file_and_a_seed_give_the_same_bits(options, tmp_path):
    labels = np.where(GROUP == 1, "a", None)
    labels[:9] = "b"
    model = small(inference=MAP(epochs=2), **options).fit(PLANE, labels)
    again = small(inference=MAP(epochs=2), **options).fit(PLANE, labels)
    model.save(tmp_path / "model")
    for other in (again, likely.load(tmp_path / "model")):
        np.testing.assert_array_equal(other.log_prob(PLANE, labels), model.log_prob(PLANE, labels))
        np.testing.assert_array_equal(other.predict_proba(PLANE), model.predict_proba(PLANE))


@pytest.mark.parametrize("prior", ["normal", Mixture(2, pretrain=2)])
def test_training_goes_on_from_a_checkpoint(prior, tmp_path):
    def stop(epoch):
        if epoch.epoch == 2:
            raise InterruptedError

    whole = small(inference=MAP(epochs=4), latent_prior=prior).fit(PLANE)
    own = MAP(epochs=4, checkpoint=Checkpoint(tmp_path / "run.ckpt", seconds=0))
    with pytest.raises(InterruptedError):
        small(inference=own.replace(callbacks=(stop,)), latent_prior=prior).fit(PLANE)
    resumed = small(inference=own, latent_prior=prior).fit(PLANE)
    np.testing.assert_array_equal(whole.log_prob(PLANE), resumed.log_prob(PLANE))


@pytest.mark.parametrize(
    ("ask", "kind", "message"),
    [
        (lambda: small(latent=0).fit(PLANE), SpecError, "latent must be a positive integer"),
        (lambda: small(levels=0).fit(PLANE), SpecError, "levels must be a positive integer"),
        (lambda: small(inference=HMC()).fit(PLANE), SpecError, "VAE gives a bound"),
        (lambda: small(latent_prior="mixtur(2)").fit(PLANE), SpecError, "Did you mean Mixture"),
        (lambda: small(bound="iwae(0)").fit(PLANE), SpecError, "k must be a positive integer"),
        (lambda: small().fit(PLANE[:1]), DataError, "needs 2 rows or more"),
        (lambda: small(likelihood=Bernoulli()).fit(PLANE), DataError, "Bernoulli needs labels 0 and 1"),
        (lambda: small(latent_prior=Mixture(50, 1)).fit(PLANE[:20]), DataError, "too few for the 50 components"),
        (lambda: small(inference=MAP(epochs=1)).fit(PLANE).inverse_transform(PLANE), DataError, r"codes are \(n, 2\)"),
        (lambda: small(inference=MAP(epochs=1)).fit(PLANE).interpolate(PLANE, PLANE[0]), DataError, "must be one row"),
        (lambda: small(encoder=ConvNet((4, 4, 4, 4))).fit(np.ones((9, 1, 4, 4))), SpecError, "ConvNet"),
        (
            lambda: small(inference=MAP(epochs=1)).fit(PLANE).predict(PLANE),
            AttributeError,
            "has no attribute 'predict'|no groups to predict",
        ),
    ],
)
def test_bad_input_is_named(ask, kind, message):
    with pytest.raises(kind, match=message):
        ask()
