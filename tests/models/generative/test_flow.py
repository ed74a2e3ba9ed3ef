"""Flow: exact densities, codes, tables with labels and integers, and every inference that can fit it."""

from __future__ import annotations

import math
import warnings

import numpy as np
import polars as pl
import pytest
import torch
from scipy import stats
from sklearn.base import clone

import likely
from likely import Flow
from likely.core.errors import ApproximationWarning, DataError, SpecError
from likely.inference import MAP, Ensemble
from likely.inference.objective import RowDensity, able
from likely.models.generative.transforms import Continuous, Spline
from likely.networks import MLP, ConvNet, Linear
from likely.optim import Adam
from likely.priors import Normal

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(200, 2)) @ np.array([[2.0, 1.0], [0.0, 0.5]]) + [5.0, -3.0]
TINY = MLP((4,))
QUICK = MAP(Adam(1e-2), epochs=3, batch_size=50)


def flow(*layers, **options):
    return Flow(*layers, **{"layers": 2, "network": TINY, "inference": QUICK, "random_state": 0} | options)


def gaussian(rows):
    return stats.multivariate_normal(rows.mean(0), np.cov(rows.T, bias=True))


# --- the density ------------------------------------------------------------------------------------------------------
def test_a_flow_of_a_gaussian_recovers_its_density():
    """With linear conditioners, maximum likelihood is the Gaussian's and a little more: scales may lean on columns."""
    inference = MAP(Adam(0.05), epochs=300, batch_size=None)
    model = flow("affine", "autoregressive", layers=1, network=Linear(), inference=inference).fit(ROWS)
    exact = gaussian(ROWS).logpdf(ROWS).mean()
    assert exact - 1e-3 < model.score(ROWS) < exact + 0.03
    assert model.log_prob_kind_ == "exact"


def test_flow_matching_learns_two_modes():
    """Untrained, a third of the draws lie between the modes; at a loss of 1/2 of the first, next to none."""
    x = np.where(RNG.random(500) < 0.5, 3.0, -3.0)[:, None] + 0.3 * RNG.normal(size=(500, 1))
    inference = MAP(Adam(1e-2), epochs=100, batch_size=125)
    model = flow("continuous", network=MLP((32,), activation="tanh"), inference=inference).fit(x)
    between = np.mean(np.abs(model.sample(500, random_state=0)) < 1.5)
    assert between < 0.15
    assert model.score(x) > stats.norm(x.mean(), x.std()).logpdf(x).mean() + 0.3


def test_hutchinson_says_that_it_estimates(seed):
    """The same seed trained the same field: 20 rows within 6 standard errors of 50 draws. By t with 49 degrees of
    freedom, a false alarm in 5 of 10⁶ seeds.
    """
    rough = flow(Continuous(trace="hutchinson"), inference=MAP(Adam(0.1), epochs=5), random_state=seed).fit(ROWS)
    assert rough.log_prob_kind_ == "estimate"
    estimate, error = rough.log_prob(ROWS[:20], draws=50, return_error=True)
    exact = clone(rough).set_params(transform=Continuous()).fit(ROWS)
    assert exact.log_prob_kind_ == "exact"
    assert (np.abs(estimate - exact.log_prob(ROWS[:20])) < 6 * error + 1e-3).all()


def test_conditions_move_the_density():
    group = np.where(RNG.random(200) < 0.5, "a", "b")
    shifted = ROWS + 6.0 * (group == "b")[:, None]
    model = flow("affine", inference=MAP(Adam(0.02), epochs=60)).fit(shifted, group)
    assert model.score(shifted, group) > model.score(shifted, group[::-1]) + 1
    gap = model.sample(300, "b", random_state=0).mean(0) - model.sample(300, "a", random_state=0).mean(0)
    assert (gap > 3).all()
    with pytest.raises(DataError, match="condition is missing"):
        model.sample(3)


# --- inferences -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(able(RowDensity("Flow"))))
def test_every_inference_that_can_fits(name):
    inference = able(RowDensity("Flow"))[name].example()
    prior = Normal(1.0, biases=Normal(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = flow("affine", layers=1, network=MLP((2,)), prior=prior, inference=inference).fit(ROWS[:12])
    assert np.isfinite(model.log_prob(ROWS)).all()
    assert model.sample(3).shape == (3, 2)


def test_inferences_that_need_exactness_are_refused_for_matching():
    with pytest.raises(SpecError, match=r"HMC needs the exact log-probability.*Flow by flow matching gives a bound"):
        flow("continuous", inference="hmc").fit(ROWS)


def test_members_of_an_ensemble_train_as_one_program():
    both = flow(inference=Ensemble(2, by=QUICK)).fit(ROWS)
    assert len(both.posterior_) == 2
    values = [both.posterior_.member(member)[0] for member in range(2)]
    assert any(not torch.equal(values[0][name], values[1][name]) for name in values[0])
    z = both.transform(ROWS)  # of the member with the largest weight
    np.testing.assert_allclose(both.inverse_transform(z), ROWS, atol=1e-3)


@pytest.mark.parametrize("layers", [("spline",), ("affine", "autoregressive"), ("planar",), ("continuous",)])
def test_a_file_gives_the_same_answers(layers, tmp_path):
    model = flow(*layers).fit(ROWS)
    model.save(tmp_path / "flow.likely")
    again = likely.load(tmp_path / "flow.likely")
    np.testing.assert_array_equal(again.log_prob(ROWS), model.log_prob(ROWS))
    np.testing.assert_array_equal(again.sample(5, random_state=1), model.sample(5, random_state=1))
    assert again.get_params()["transform"] == layers[0]


@pytest.mark.parametrize("inference", [QUICK, Ensemble(2, by=QUICK)])
def test_a_file_keeps_heavy_tails(inference, tmp_path):
    heavy = np.column_stack([ROWS[:, 0], RNG.standard_cauchy(200)])
    model = flow(inference=inference).fit(heavy)
    model.save(tmp_path / "flow.likely")
    again = likely.load(tmp_path / "flow.likely")
    assert again.posterior_.buffers["units.heavy"][0].tolist() == [0.0, 1.0]
    np.testing.assert_array_equal(again.log_prob(heavy), model.log_prob(heavy))
    np.testing.assert_array_equal(again.sample(5, random_state=1), model.sample(5, random_state=1))


def test_a_fit_resumes_from_its_checkpoint(tmp_path):
    class Stop(Exception):
        pass

    def stop(epoch):
        if epoch.epoch == 2:
            raise Stop

    whole = flow(inference=MAP(epochs=4, batch_size=50)).fit(ROWS)
    own = MAP(epochs=4, batch_size=50, checkpoint=str(tmp_path / "run.ckpt"))
    with pytest.raises(Stop):
        flow(inference=own.replace(callbacks=(stop,))).fit(ROWS)
    np.testing.assert_array_equal(flow(inference=own).fit(ROWS).log_prob(ROWS), whole.log_prob(ROWS))


# --- codes ------------------------------------------------------------------------------------------------------------
def test_codes_lead_back_and_interpolation_meets_its_ends():
    model = flow(Spline(bins=4)).fit(ROWS)
    z = model.transform(ROWS)
    assert z.shape == ROWS.shape
    np.testing.assert_allclose(model.inverse_transform(z), ROWS, atol=1e-3)
    way = model.interpolate(ROWS[0], ROWS[1], 5)
    assert way.shape == (5, 2)
    np.testing.assert_allclose(way[[0, -1]], ROWS[:2], atol=1e-3)
    rows, codes = model.sample(6, return_hidden=True)
    np.testing.assert_allclose(model.inverse_transform(codes), rows, atol=1e-6)
    path = model.trajectory(ROWS[:7])
    assert path.shape[1:] == (7, 2)
    np.testing.assert_allclose(path[-1], z[:7], atol=1e-5)


def test_the_argument_and_the_verb_share_a_name():
    model = flow(Spline(bins=4))
    assert model.get_params()["transform"] == Spline(bins=4)
    assert model.set_params(transform__bins=6).get_params()["transform__bins"] == 6
    assert clone(model).get_params()["transform"] == Spline(bins=6)
    assert "Spline(bins=6)" in repr(model)
    assert callable(model.transform)


# --- integers, labels, gaps -------------------------------------------------------------------------------------------
def test_integers_stay_integers_and_have_probabilities():
    counts = RNG.poisson(4.0, (400, 1)).astype(float)
    model = flow(inference=MAP(Adam(1e-2), epochs=20)).fit(counts)
    assert model.log_prob_kind_ == "bound"
    draws = model.sample(50, random_state=0)
    np.testing.assert_array_equal(draws, draws.round())
    every = np.arange(-30.0, 60.0)[:, None]
    assert np.exp(model.log_prob(every, draws=100)).sum() == pytest.approx(1.0, abs=0.05)
    _, error = model.log_prob(every[30:40], draws=100, return_error=True)
    assert (error > 0).all()
    dense = flow(dequantise=False).fit(counts + np.linspace(0, 1e-3, 400)[:, None])
    assert dense.log_prob_kind_ == "exact"


def test_columns_that_are_never_negative_stay_so(seed):
    """For any seed: 32 of 200 exponential rows would be negative if they were normal, and of those of N(4, 1) none."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.exponential(2.0, 200), 4 + rng.normal(size=200)])
    model = flow("affine", inference=MAP(Adam(1e-2), epochs=3)).fit(rows)
    assert (model.sample(2_000, random_state=seed)[:, 0] > 0).all()
    assert model.log_prob([[-1.0, 4.0]]) == -np.inf
    assert np.isfinite(model.log_prob([[1.0, -1.0]]))


def table(rows=300):
    rng = np.random.default_rng(1)
    kind = rng.choice(["cat", "dog", "emu"], rows, p=[0.5, 0.3, 0.2])
    size = np.select([kind == "cat", kind == "dog"], [4.0, 20.0], 40.0) + rng.normal(size=rows)
    return pl.DataFrame({"kind": kind, "size": size, "legs": rng.integers(2, 9, rows), "tame": rng.random(rows) < 0.5})


def test_tables_with_labels_come_back_as_tables():
    rows = table()
    model = flow("affine", inference=MAP(Adam(2e-2), epochs=60)).fit(rows)
    new = model.sample(400, random_state=0)
    assert new.columns == rows.columns
    assert new.schema == rows.schema
    fractions = [np.mean(new["kind"].to_numpy() == name) for name in ("cat", "dog", "emu")]
    np.testing.assert_allclose(fractions, [0.5, 0.3, 0.2], atol=0.15)
    means = new.group_by("kind").agg(pl.col("size").mean()).sort("kind")["size"].to_numpy()
    assert means[0] < means[1] < means[2]
    assert np.isfinite(model.log_prob(rows)).all()
    fixed = model.sample(60, {"kind": "emu", "legs": 4}, random_state=0)
    assert set(fixed["kind"]) == {"emu"}
    assert set(fixed["legs"]) == {4}
    assert fixed["size"].mean() > 25
    with pytest.raises(DataError, match="speaks of numbers; column 'kind' of X has labels"):
        model.transform(rows)


def test_columns_of_few_numbers_are_links_of_the_chain():
    """They have probabilities, exactly; of many numbers in steps of ⅛ there is a bound, and draws keep the step."""
    rows = table().with_columns((pl.col("size") * 8).round() / 8)
    model = flow("affine").fit(rows)
    assert model.posterior_.module.labels == (0, 2, 3)
    assert model.posterior_.module.steps == {1: 0.125}
    assert model.log_prob_kind_ == "bound"
    new = model.sample(100, random_state=0)["size"].to_numpy()
    np.testing.assert_array_equal(8 * new, (8 * new).round())
    assert flow("affine").fit(table()).log_prob_kind_ == "exact"
    assert flow("affine").fit(table().select("kind", "legs", "tame")).posterior_.module.numbers == (1,)


def test_a_missing_label_is_drawn_by_what_is_seen():
    rows = table()
    model = flow("affine", inference=MAP(Adam(2e-2), epochs=60)).fit(rows)
    holes = rows.head(60).with_columns(pl.lit(None, dtype=pl.String).alias("kind"))
    assert np.mean(model.impute(holes)["kind"].to_numpy() == rows["kind"].head(60).to_numpy()) > 0.8


def test_fixed_columns_give_the_conditional_of_a_gaussian(seed):
    """The mean of 2000 draws lies within 6 standard errors, by no fewer than 500 effective candidates.

    A false alarm in 2 of 10⁹ seeds.
    """
    inference = MAP(Adam(0.05), epochs=200, batch_size=None)
    options = {"layers": 1, "network": Linear(), "inference": inference, "random_state": seed}
    model = flow("affine", "autoregressive", **options).fit(ROWS)
    draws = model.sample(2000, {0: 7.0}, random_state=seed)
    assert (draws[:, 0] == 7.0).all()
    mean, cov = ROWS.mean(0), np.cov(ROWS.T, bias=True)
    expected = mean[1] + cov[0, 1] / cov[0, 0] * (7.0 - mean[0])
    scale = math.sqrt(cov[1, 1] - cov[0, 1] ** 2 / cov[0, 0])
    assert abs(draws[:, 1].mean() - expected) < 6 * scale / math.sqrt(500)
    assert draws[:, 1].std() == pytest.approx(scale, rel=0.25)


# --- images -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("network", [MLP((8,)), ConvNet((4,))])
def test_images_go_in_and_come_out(network):
    images = RNG.normal(size=(40, 1, 4, 4))
    model = flow("affine", network=network).fit(images)
    assert model.sample(3).shape == (3, 1, 4, 4)
    z = model.transform(images)
    np.testing.assert_allclose(model.inverse_transform(z), images, atol=1e-3)
    assert np.isfinite(model.log_prob(images)).all()


# --- bad input --------------------------------------------------------------------------------------------------------
def test_columns_without_width_are_held_and_told():
    noise = RNG.normal(size=200)
    with pytest.warns(ApproximationWarning, match="Column 1 of X has one value in all rows"):
        model = flow().fit(np.column_stack([noise, np.full(200, 0.5)]))
    assert np.isfinite(model.score(np.column_stack([noise, np.full(200, 0.5)])))
    twice = np.column_stack([noise, 2 * noise + 1])
    with pytest.warns(ApproximationWarning, match=r"Column [01] of X follows from the others"):
        model = flow(inference=MAP(Adam(0.1), epochs=30)).fit(twice)
    assert np.isfinite(model.score(twice))


HOLE = np.array([[1.5, np.nan], [2.5, 0.5], [0.5, 3.5]])


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: flow().fit(ROWS[:1]), "needs 2 rows or more; X has 1"),
        (lambda: flow().fit(HOLE), "Flow cannot marginalise over them; Autoregressive, VAE"),
        (lambda: flow().fit(ROWS).log_prob(HOLE), "Flow cannot marginalise"),
        (lambda: flow().fit(ROWS[:, :1] > 5), "Every column of X has labels"),
        (lambda: flow().fit(ROWS).inverse_transform(np.zeros((2, 5))), "Z has shape \\(2, 5\\)"),
        (lambda: flow().fit(ROWS).interpolate(ROWS[:2], ROWS[:1], 3), "a has shape \\(2, 2\\); it must be one row"),
        (lambda: flow("affine", network=ConvNet((2,))).fit(RNG.normal(size=(9, 1, 5, 4))), "5 × 4 pixels; sides must"),
    ],
)
def test_bad_rows_are_named(ask, message):
    with pytest.raises(DataError, match=message):
        ask()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transform": "cubic"}, "Unknown transform 'cubic'"),
        ({"order": "random"}, "order must be one of coupling, autoregressive"),
        ({"base": "cauchy"}, "base must be one of normal, logistic, student_t"),
        ({"mixing": "none"}, "mixing must be one of permutation, linear"),
        ({"layers": 0}, "layers must be an integer from 1"),
        ({"dequantise": 1}, "dequantise must be True or False"),
        ({"order": "autoregressive", "network": ConvNet((2,))}, "has no masked form"),
    ],
)
def test_arguments_that_mean_nothing_are_named(options, message):
    with pytest.raises(SpecError, match=message):
        flow(**options).fit(ROWS)
