"""Autoregressive: a chain of conditionals that sums to 1, its closed forms, gaps, orders, tables and files."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import stats
from sklearn.linear_model import LogisticRegression

import likely
from likely import Autoregressive
from likely.core.errors import ApproximationWarning, DataError, SpecError
from likely.core.spec import registered
from likely.inference import MAP
from likely.inference.objective import RowDensity, able
from likely.likelihoods import Bernoulli, Categorical, Likelihood, MultivariateNormal, Normal, NormalMixture, Poisson
from likely.models.generative.masked_density import MaskedDensity
from likely.models.generative.observed import Observed, columns_of
from likely.networks import MLP, Linear
from likely.optim import LBFGS, SGD, Adam
from likely.priors import Normal as NormalPrior

RNG = np.random.default_rng(0)
BITS = (RNG.random((300, 4)) < 0.5).astype(float)
BITS[:, 2] = np.where(RNG.random(300) < 0.9, BITS[:, 0], BITS[:, 1])
BITS[:, 3] = np.where(RNG.random(300) < 0.8, 1 - BITS[:, 2], BITS[:, 3])
ALL_BITS = np.array(list(itertools.product([0.0, 1.0], repeat=4)))
QUICK = MAP(Adam(0.03), epochs=4, batch_size=64)
BELIEF = NormalPrior(1.0, biases=NormalPrior(1.0))
SMALL = MLP((12,), activation="tanh")
PAIRS = RNG.multivariate_normal([1.0, -2.0], [[1.0, 0.8], [0.8, 2.0]], 500)


def table(rows=80):
    rng = np.random.default_rng(1)
    size = rng.normal(size=rows)
    return pl.DataFrame(
        {
            "size": size,
            "count": rng.poisson(20, rows),
            "kind": np.where(size > 0.5, "big", np.where(rng.random(rows) < 0.5, "red", "blue")),
            "flag": rng.random(rows) < 0.5,
            "price": (10 * size + 50).round(1),
        }
    )


def chain(**options):
    return Autoregressive(**{"network": SMALL, "inference": QUICK, "random_state": 0} | options)


def fitted_line(missing=False, seed=0):
    """x₀, and x₁ given it, both Normal: all that can be asked has a closed form."""
    rows = PAIRS.copy()
    if missing:
        rows[::5, 0] = np.nan
    line = MAP(Adam(0.05), epochs=250, batch_size=None)
    scale = "input" if missing else "learned"  # a gap may also change how sure the next column is
    return Autoregressive(Normal(scale), Linear(), inference=line, random_state=seed).fit(rows)


# --- it is a distribution -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("orders", [1, 3])
@pytest.mark.parametrize("network", [SMALL, MLP((8, 8), residual="add"), MLP((9,), residual="dense", dropout=0.2)])
def test_probabilities_of_all_rows_sum_to_one(orders, network):
    model = chain(network=network, orders=orders).fit(BITS)
    assert np.exp(model.log_prob(ALL_BITS)).sum() == pytest.approx(1, abs=1e-5)
    conditional = chain(network=network, orders=orders).fit(BITS[:, :3], BITS[:, 3].astype(int))
    for label in (0, 1):
        rows = np.unique(ALL_BITS[:, :3], axis=0)
        assert np.exp(conditional.log_prob(rows, [label] * 8)).sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("likelihood", ["auto", Normal(scale="input"), NormalMixture(3)])
def test_a_density_of_numbers_integrates_to_one(likelihood):
    model = chain(likelihood=likelihood, orders=2).fit(PAIRS[:200])
    side = [np.linspace(centre - 7, centre + 7, 401) for centre in (1.0, -2.0)]  # as fine as the narrowest component
    rows = np.stack(np.meshgrid(*side), -1).reshape(-1, 2)
    assert np.exp(model.log_prob(rows)).sum() * (14 / 400) ** 2 == pytest.approx(1, abs=2e-2)


def test_each_conditional_depends_on_earlier_columns_alone():
    x = torch.from_numpy(np.column_stack([BITS, RNG.integers(0, 3, 300), PAIRS[:300]]))
    columns = columns_of([Bernoulli()] * 4 + [Categorical(3), Normal("input"), Normal("input")], x)
    torch.manual_seed(0)
    module = MaskedDensity(columns, (7,), MLP((40,), activation="tanh"), 3).double()
    module.adapt(x, None, None)
    torch.nn.init.normal_(module.network.last.weight)  # which starts at 0
    owner = module.features.owners
    for index, order in enumerate(module.network.orders):
        place = np.argsort(order)
        rows = module.features(x[:1])[0]
        jacobian = torch.autograd.functional.jacobian(lambda f, index=index: module.network(f, order=index), rows)
        targets = module.network.outputs
        earlier = torch.tensor([[bool(place[i] < place[o]) for i in owner] for o in targets])
        assert torch.equal(jacobian != 0, earlier)


def test_columns_taken_together_have_the_log_p_of_each():
    x = torch.from_numpy(np.column_stack([PAIRS[:60], BITS[:60], RNG.integers(0, 3, 60), RNG.integers(0, 5, 60)]))
    kinds = [Normal(), Normal(), *[Bernoulli()] * 2, Normal(), Bernoulli(), Categorical(3), Categorical(5)]
    observed = Observed(columns_of(kinds, x), (8,)).double()
    observed.adapt(x, None)
    out = torch.randn(60, observed.size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert len(observed.groups) == 3
    torch.testing.assert_close(observed.log_prob(out, x, whole=True), observed.log_prob(out, x))


def test_log_p_of_orders_is_the_log_of_their_mean():
    model = chain(orders=3).fit(BITS)
    module, x = model.posterior_.module, torch.from_numpy(BITS).float()
    with torch.no_grad():
        single = torch.stack([module._of_order(x, module.features(x), None, order) for order in range(3)])
    expected = torch.logsumexp(single, 0) - math.log(3)
    np.testing.assert_allclose(model.log_prob(BITS), expected, atol=1e-5)
    assert float(single.std(0).max()) > 1e-3  # they do differ


def test_a_linear_network_reaches_the_chain_of_logistic_regressions():
    exact = MAP(LBFGS(), epochs=50, batch_size=None)
    model = Autoregressive(network=Linear(), prior=NormalPrior(2.0), inference=exact, random_state=0).fit(BITS)
    expected = np.zeros(300)
    first = BITS[:, 0].mean()
    expected += np.where(BITS[:, 0] == 1, np.log(first), np.log(1 - first))
    for j in range(1, 4):
        peer = LogisticRegression(C=4.0, tol=1e-10, max_iter=1000).fit(BITS[:, :j], BITS[:, j])
        expected += peer.predict_log_proba(BITS[:, :j])[np.arange(300), BITS[:, j].astype(int)]
    np.testing.assert_allclose(model.log_prob(BITS), expected, atol=2e-3)


# --- gaps -----------------------------------------------------------------------------------------------------------
def test_the_last_column_is_filled_by_its_exact_conditional_mean():
    model = fitted_line()
    holes = PAIRS[:50].copy()
    holes[:, 1] = np.nan
    slope, start = np.polyfit(PAIRS[:, 0], PAIRS[:, 1], 1)
    np.testing.assert_allclose(model.impute(holes)[:, 1], start + slope * holes[:, 0], atol=0.02)


def test_an_earlier_gap_is_filled_given_what_comes_later(seed):
    """Weighted candidates: means over 40 rows, within 5 standard errors (0.15 each): false alarms below 1 in 10⁵."""
    model = fitted_line(seed=seed)
    holes = PAIRS[:40].copy()
    holes[:, 0] = np.nan
    mean, covariance = PAIRS.mean(0), np.cov(PAIRS.T, bias=True)
    gain = covariance[0, 1] / covariance[1, 1]
    expected = mean[0] + gain * (holes[:, 1] - mean[1])
    several = model.impute(holes, draws=50, random_state=seed)[:, :, 0]
    left = math.sqrt(covariance[0, 0] - gain * covariance[0, 1])
    assert abs((several.mean(0) - expected).mean()) < 5 * 0.15 / math.sqrt(40)
    assert abs(several.std(0).mean() / left - 1) < 0.15
    assert np.corrcoef(several.mean(0), expected)[0, 1] > 0.9


def test_a_gap_at_the_end_is_summed_over_exactly():
    model = chain().fit(BITS)
    holes = ALL_BITS[:8].copy()
    holes[:, 3] = np.nan
    both = [np.column_stack([holes[:, :3], np.full(8, bit)]) for bit in (0.0, 1.0)]
    expected = np.logaddexp(*(model.log_prob(rows) for rows in both))
    answer, error = model.log_prob(holes, return_error=True)
    np.testing.assert_allclose(answer, expected, atol=1e-5)
    np.testing.assert_allclose(error, 0, atol=1e-5)


def test_an_earlier_gap_is_summed_over_within_its_error(seed):
    """16 rows within 5 standard errors each: false alarms below 1 in 10⁵, where 64 draws are nearly normal."""
    model = chain(random_state=seed).fit(BITS)
    holes = ALL_BITS.copy()
    holes[:, 1] = np.nan
    both = []
    for bit in (0.0, 1.0):
        rows = holes.copy()
        rows[:, 1] = bit
        both.append(model.log_prob(rows))
    answer, error = model.log_prob(holes, return_error=True)
    assert (np.abs(answer - np.logaddexp(*both)) < 5 * error + 1e-5).all()


def test_rows_with_gaps_train_and_later_columns_see_the_gap():
    model = fitted_line(missing=True)
    gone = np.array([[np.nan, -2.0]])
    known = PAIRS[::5, 1]
    expected = stats.norm(known.mean(), known.std()).logpdf(-2.0)
    assert model.log_prob(gone)[0] == pytest.approx(expected, abs=0.05)
    assert model.log_prob([[1.0, np.nan]])[0] == pytest.approx(stats.norm(*moments()).logpdf(1.0), abs=0.05)
    assert np.isfinite(model.impute(np.array([[np.nan, 0.5], [np.nan, np.nan]]))).all()


def moments():
    kept = np.delete(PAIRS[:, 0], np.s_[::5])
    return kept.mean(), kept.std()


def test_the_order_that_has_the_observed_columns_first_fills_the_gaps():
    model = chain(orders=4).fit(BITS)
    module = model.posterior_.module
    for index, order in enumerate(module.network.orders):
        row = torch.zeros(1, 4)
        row[:, list(order[2:])] = math.nan
        chosen, exact = module.best_orders(row)
        assert bool(exact)
        ends = set(module.network.orders[int(chosen)][2:])
        assert ends == set(order[2:]), index


# --- draws ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("orders", [1, 2])
def test_draws_have_the_probabilities_of_the_model(orders, seed):
    """χ² of 4,000 draws against 16 probabilities: false alarm at 1e-6."""
    model = chain(orders=orders, random_state=seed).fit(BITS)
    new = model.sample(4000, random_state=seed)
    counts = np.bincount((new @ [8, 4, 2, 1]).astype(int), minlength=16)
    expected = np.exp(model.log_prob(ALL_BITS))
    assert stats.chisquare(counts, 4000 * expected / expected.sum()).pvalue > 1e-6


def test_draws_given_some_columns_have_their_conditional_probabilities(seed):
    """χ² at 1e-6; the fixed column comes last, so that candidates are weighed."""
    model = chain(random_state=seed).fit(BITS)
    new = model.sample(3000, {3: 1.0}, random_state=seed)
    assert (new[:, 3] == 1).all()
    counts = np.bincount((new[:, :3] @ [4, 2, 1]).astype(int), minlength=8)
    expected = np.exp(model.log_prob(ALL_BITS[ALL_BITS[:, 3] == 1]))
    assert stats.chisquare(counts, 3000 * expected / expected.sum()).pvalue > 1e-6


@pytest.mark.parametrize("library", [pd, pl])
def test_synthetic_rows_look_like_the_table(library):
    frame = library.DataFrame(table().to_dict(as_series=False))
    model = chain(orders=2).fit(frame)
    new = model.sample(200, random_state=0)
    assert isinstance(new, library.DataFrame)
    assert set(new["kind"]) <= {"big", "red", "blue"}
    assert list(new.dtypes) == list(frame.dtypes)
    for name in ("size", "count", "price"):
        assert frame[name].min() <= new[name].min() <= new[name].max() <= frame[name].max()
    np.testing.assert_array_equal(new["price"], np.round(new["price"], 1))
    fixed = model.sample(20, {"kind": "big", "count": 17}, random_state=0)
    assert set(fixed["kind"]) == {"big"}
    assert set(fixed["count"]) == {17}


def test_a_table_with_gaps_in_every_kind_of_column():
    frame = table().with_columns(
        pl.when(pl.int_range(pl.len()) % 7 == i).then(None).otherwise(pl.col(name)).alias(name)
        for i, name in enumerate(["size", "count", "kind", "flag"])
    )
    model = chain().fit(frame)
    filled = model.impute(frame)
    assert not any(filled.null_count().row(0))
    kept = frame["kind"].is_not_null()
    assert (filled["kind"].filter(kept) == frame["kind"].filter(kept)).all()
    assert np.isfinite(model.log_prob(frame)).all()


def test_a_condition_moves_the_rows():
    shifted = PAIRS + 6 * (np.arange(500) % 2)[:, None]
    labels = np.where(np.arange(500) % 2, "up", "down")
    model = chain(likelihood=Normal(), inference=MAP(Adam(0.03), epochs=40)).fit(shifted, labels)
    gap = model.sample(2000, "up", random_state=0).mean(0) - model.sample(2000, "down", random_state=0).mean(0)
    np.testing.assert_allclose(gap, [6, 6], atol=1.0)


# --- every likelihood, every inference ------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(registered(Likelihood)))
def test_every_likelihood_has_a_chain(name):
    likelihood = registered(Likelihood)[name].example()
    if isinstance(likelihood, MultivariateNormal):
        likelihood = MultivariateNormal("input")  # a learned covariance is refused, see below
    target = likelihood.example_target()
    size = likelihood.size(target)
    torch.manual_seed(0)
    y = likelihood.distribution(torch.randn(60, size)).sample().double().reshape(60, -1)
    rows = y.numpy() if likelihood.event_dim else np.column_stack([y, y.flip(0)])
    model = chain(likelihood=likelihood, inference=MAP(epochs=1)).fit(rows)
    assert np.isfinite(model.log_prob(rows)).all()
    new = model.sample(5, random_state=0)
    assert new.shape == (5, rows.shape[1])
    assert np.isfinite(model.log_prob(new)).all()


@pytest.mark.filterwarnings("ignore::likely.core.errors.ApproximationWarning")  # of examples that stop early
@pytest.mark.parametrize("name", sorted(able(RowDensity("Autoregressive"))))
def test_every_inference_that_can_fits_it(name):
    inference = able(RowDensity("Autoregressive"))[name].example()
    model = chain(orders=2, network=MLP((3,)), prior=BELIEF, inference=inference).fit(BITS[:40, :3])
    assert np.exp(model.log_prob(np.unique(ALL_BITS[:, :3], axis=0))).sum() == pytest.approx(1, abs=1e-4)


def test_auto_chooses_likelihoods_and_keeps_rows_to_judge_by():
    model = chain().fit(table(120))
    assert model._automatic(120).validation == 0.1
    assert model._automatic(50).validation is None
    kinds = [part.likelihood for part in model.columns_.parts]
    assert kinds[0] == NormalMixture(8)
    assert kinds[1] == NormalMixture(8, step=1.0)
    assert kinds[2:4] == [Categorical(3), Bernoulli()]
    assert kinds[4] == NormalMixture(8, step=0.1)


def test_weights_count_rows():
    """To rounding with steps in proportion to gradients; those of Adam go a whole rate by what rounding leaves of 0."""
    both = MAP(SGD(0.5), epochs=50, batch_size=None)
    weight = RNG.integers(0, 3, 300)
    weighted = Autoregressive(network=Linear(), inference=both, random_state=0).fit(BITS, sample_weight=weight)
    repeated = Autoregressive(network=Linear(), inference=both, random_state=0).fit(np.repeat(BITS, weight, 0))
    np.testing.assert_allclose(weighted.log_prob(ALL_BITS), repeated.log_prob(ALL_BITS), rtol=1e-4)


# --- files and checkpoints ------------------------------------------------------------------------------------------
def test_a_file_gives_the_same_bits(tmp_path):
    model = chain(orders=3).fit(table())
    model.save(tmp_path / "chain.likely")
    again = likely.load(tmp_path / "chain.likely")
    np.testing.assert_array_equal(again.log_prob(table()), model.log_prob(table()))
    assert again.sample(20, random_state=1).equals(model.sample(20, random_state=1))


def test_a_killed_fit_resumes_to_the_same_bits(tmp_path):
    path = tmp_path / "run.ckpt"
    whole = chain(orders=3, inference=MAP(epochs=4, batch_size=32)).fit(BITS)

    def die(epoch):
        if epoch.epoch == 2:
            raise KeyboardInterrupt

    stopped = MAP(epochs=4, batch_size=32, checkpoint=str(path), callbacks=(die,))
    with pytest.raises(KeyboardInterrupt):
        chain(orders=3, inference=stopped).fit(BITS)
    resumed = chain(orders=3, inference=MAP(epochs=4, batch_size=32, checkpoint=str(path))).fit(BITS)
    np.testing.assert_array_equal(resumed.log_prob(ALL_BITS), whole.log_prob(ALL_BITS))


# --- columns without width ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("second", "message"),
    [
        (lambda x: np.full(len(x), 1 / 3), "Column 1 of X has one value in all rows"),
        (lambda x: 2 * x + 1, r"Column [01] of X follows from the others"),
    ],
)
def test_densities_without_bound_are_held_and_told(second, message):
    rows = np.column_stack([PAIRS[:100, 0], second(PAIRS[:100, 0])])
    with pytest.warns(ApproximationWarning, match=message):
        model = chain(inference=MAP(Adam(1e-2), epochs=20)).fit(rows)
    assert np.isfinite(model.log_prob(rows)).all()


def test_a_rounded_constant_has_no_width_where_the_likelihood_is_a_density():
    rows = np.column_stack([PAIRS[:50, 0], np.full(50, 2.5)])
    with pytest.warns(ApproximationWarning, match="Column 1 of X has one value in all rows"):
        model = chain(likelihood=Normal(), inference=MAP(epochs=1)).fit(rows)
    assert np.isfinite(model.score(rows))


def test_rounded_numbers_have_probabilities_and_need_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = chain().fit(np.column_stack([BITS, np.full(300, 2.5)]))
    assert model.log_prob(np.column_stack([BITS, np.full(300, 2.5)])).max() <= 1e-6


# --- bad input ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: chain(orders=0).fit(BITS), SpecError, "orders=0: must be an integer from 1 to 1,000"),
        (lambda: chain(network="lstm()").fit(BITS), SpecError, "has no masked form"),
        (lambda: chain(likelihood=Poisson()).fit(-BITS), DataError, "negative value"),
        (
            lambda: chain(likelihood=MultivariateNormal()).fit(PAIRS),
            SpecError,
            "vector likelihood with learned",
        ),
        (lambda: chain().fit(BITS[:1]), DataError, "needs 2 rows or more"),
        (lambda: chain().fit(BITS).log_prob(BITS + 0.5), DataError, "Bernoulli needs"),
        (lambda: chain().fit(BITS, BITS[:, 0].astype(int)).sample(2), DataError, "condition is missing"),
        (lambda: chain().fit(table()).sample(2, {"kind": "green"}), DataError, "'green'"),
        (lambda: chain().fit(table()).sample(2, {"colour": "red"}), DataError, "condition has a column 'colour'"),
    ],
)
def test_bad_input_is_named(ask, error, message):
    with pytest.raises(error, match=message):
        ask()
