"""Columns: what one likelihood for each column says of rows, and how it is fitted to weighted rows."""

from __future__ import annotations

import json

import pytest
import torch

from likely.core.errors import DataError, ModelFileError, SpecError
from likely.core.spec import registered
from likely.likelihoods import (
    Bernoulli,
    Categorical,
    Laplace,
    Likelihood,
    MultivariateNormal,
    Normal,
    Poisson,
    Product,
    StudentT,
)
from likely.models.emissions import Columns, GaussianEmission
from likely.priors import Flat

ALL = [cls.example() for name, cls in registered(Likelihood).items() if name != "product"]
MIXED = [Normal(), Normal(), Poisson(), Categorical(3), MultivariateNormal(dim=2), StudentT(df=3.0), Bernoulli()]


def rows_of(likelihoods, n, seed=0):
    """Rows (n, columns) drawn from one η for each likelihood."""
    torch.manual_seed(seed)
    pieces = []
    for likelihood in likelihoods:
        eta = 0.5 * torch.randn(likelihood.size(likelihood.example_target()), dtype=torch.float64)
        pieces.append(likelihood.distribution(eta.expand(n, -1)).sample().double().reshape(n, -1))
    return torch.cat(pieces, 1)


def weights_of(n, starts, components, seed=1):
    torch.manual_seed(seed)
    return torch.rand(n, starts, components, dtype=torch.float64).softmax(-1)


def fitted(emission, x, weight, blocks=1):
    """The M-step from these weights, the rows given in blocks."""
    emission.bind(x, None)
    totals = emission.zeros(*weight.shape[1:])
    step = -(-len(x) // blocks)
    for start in range(0, len(x), step):
        rows = slice(start, min(start + step, len(x)))
        emission.accumulate(totals, None, x[rows], weight[rows], rows)
    return emission.maximise(None, totals)


def by_part(emission, eta):
    """Each part's likelihood, η and column, one for each target."""
    pieces = eta.split([part.size for part in emission.parts], -1)
    for part, piece in zip(emission.parts, pieces, strict=True):
        targets = piece.unflatten(-1, (part.count, -1))
        for j in range(part.count):
            columns = (
                part.columns if part.likelihood.event_dim else slice(part.columns.start + j, part.columns.start + j + 1)
            )
            yield part.likelihood, targets[..., j, :], columns


def target(likelihood, x, columns):
    return x[:, columns] if likelihood.event_dim else x[:, columns.start]


# --- the distribution -----------------------------------------------------------------------------------------------
def test_labels_are_the_columns_whose_likelihood_says_so():
    x = torch.tensor([[0.5, 1.0, 2.0], [1.5, 0.0, 1.0], [2.5, 1.0, 0.0]]).double()
    emission = Columns.of([Normal(), Bernoulli(), Categorical()], x)
    assert emission.label_columns().tolist() == [False, True, True]
    assert GaussianEmission(3, "full", 0.0).label_columns() is None


def test_log_prob_is_the_sum_over_columns():
    x = rows_of(MIXED, 30)
    emission = Columns.of(MIXED, x)
    eta = fitted(emission, x, weights_of(30, 2, 3))["eta"]
    table = emission.log_prob({"eta": eta}, x)
    assert table.shape == (30, 2, 3)
    for start in range(2):
        for k in range(3):
            log_probs = [like.log_prob(own, target(like, x, j)) for like, own, j in by_part(emission, eta[start, k])]
            torch.testing.assert_close(table[:, start, k], sum(log_probs))


def test_a_missing_value_is_left_out():
    x = rows_of(MIXED, 40)
    emission = Columns.of(MIXED, x)
    eta = fitted(emission, x, weights_of(40, 1, 2))["eta"]
    holes = x.clone()
    holes[::2, 0], holes[::3, 3], holes[::4, 4], holes[::5, 6] = torch.nan, torch.nan, torch.nan, torch.nan
    table = emission.log_prob({"eta": eta}, holes)[:, 0]
    expected = torch.zeros(40, 2, dtype=torch.float64)
    for likelihood, own, columns in by_part(emission, eta[0]):
        present = ~holes[:, columns].isnan().any(1)
        expected[present] += likelihood.each_log_prob(own, target(likelihood, x, columns)[present])
    torch.testing.assert_close(table, expected)


def test_integers_and_single_precision_are_read_as_they_are():
    x = torch.randint(0, 5, (50, 3))
    weight = weights_of(50, 1, 2)
    expected = fitted(Columns.of(Poisson(), x.double()), x.double(), weight)["eta"]
    for dtype in (torch.int64, torch.uint8, torch.float32):
        emission = Columns.of(Poisson(), x.to(dtype))
        torch.testing.assert_close(fitted(emission, x.to(dtype), weight)["eta"], expected)


def test_samples_refitted_give_the_parameters_back(seed):
    """Six means and rates of 20,000 draws lie within 5 standard errors: a false alarm in 3 of 10⁶ seeds."""
    emission = Columns.of([Normal(), Poisson(), Bernoulli()], torch.tensor([[0.0, 1.0, 1.0]]))
    eta = torch.tensor([[1.0, -1.0, 0.5, 0.0], [-2.0, 0.5, 1.5, 1.0]], dtype=torch.float64)
    component = torch.arange(40_000) % 2
    torch.manual_seed(seed)
    x = emission.sample({"eta": eta}, component)
    for k in range(2):
        own, n = x[component == k], 20_000
        mean, log_scale, log_rate, logit = eta[k]
        errors = torch.stack([log_scale.exp(), (0.5 * log_rate).exp(), logit.sigmoid().mul(1 - logit.sigmoid()).sqrt()])
        expected = torch.stack([mean, log_rate.exp(), logit.sigmoid()])
        assert bool(((own.mean(0) - expected).abs() < 5 * errors / n**0.5).all())


# --- estimates ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("likelihood", ALL, ids=repr)
def test_the_m_step_is_weighted_maximum_likelihood_column_by_column(likelihood):
    x = rows_of([likelihood] * (1 if likelihood.event_dim else 2), 120)
    weight = weights_of(120, 2, 2)
    emission = Columns.of(likelihood, x, smoothing=0.0)
    eta = fitted(emission, x, weight)["eta"]
    for own, estimate, columns in by_part(emission, eta.flatten(0, 1)):
        expected = own.weighted_mle(target(own, x, columns), weight.flatten(1))
        torch.testing.assert_close(estimate, expected, atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("likelihood", ALL, ids=repr)
def test_smoothing_is_a_fraction_of_all_rows(likelihood):
    """ε·mean over all rows is a weight of ε/n more for each of them."""
    x = rows_of([likelihood], 80)
    weight = weights_of(80, 1, 2)
    smoothed = fitted(Columns.of(likelihood, x, smoothing=8.0), x, weight)["eta"]
    expected = fitted(Columns.of(likelihood, x, smoothing=0.0), x, weight + 8.0 / 80)["eta"]
    torch.testing.assert_close(smoothed, expected, atol=1e-7, rtol=1e-7)


def test_blocks_add_up():
    x = rows_of(MIXED, 101)
    x[::7, 0], x[::5, 2] = torch.nan, torch.nan
    weight = weights_of(101, 2, 3)
    whole, pieces = (fitted(Columns.of(MIXED, x), x, weight, blocks)["eta"] for blocks in (1, 4))
    torch.testing.assert_close(whole, pieces, atol=1e-9, rtol=1e-9)


def test_missing_values_do_not_count_in_the_estimate():
    x = rows_of(MIXED, 90)
    x[::3, 1], x[1::4, 5], x[::5, 4] = torch.nan, torch.nan, torch.nan
    weight = weights_of(90, 1, 2)
    emission = Columns.of(MIXED, x, smoothing=0.0)
    eta = fitted(emission, x, weight)["eta"][0]
    for own, estimate, columns in by_part(emission, eta):
        present = ~x[:, columns].isnan().any(1)
        expected = own.weighted_mle(target(own, x, columns)[present], weight[present, 0])
        torch.testing.assert_close(estimate, expected, atol=1e-7, rtol=1e-7)


def test_a_component_without_rows_is_the_background():
    x = rows_of(MIXED, 60)
    weight = torch.zeros(60, 1, 2, dtype=torch.float64)
    weight[..., 0] = 1.0
    for smoothing in (0.0, 1e-6):
        eta = fitted(Columns.of(MIXED, x, smoothing=smoothing), x, weight)["eta"][0]
        torch.testing.assert_close(eta[0], eta[1], atol=1e-6, rtol=1e-6)


def test_one_row_alone_does_not_make_a_point():
    x = torch.tensor([[0.0], [1.0], [5.0]], dtype=torch.float64)
    weight = torch.eye(3, dtype=torch.float64)[:, None, :]
    log_scale = fitted(Columns.of(Normal(), x, smoothing=1e-4), x, weight)["eta"][0, :, 1]
    variance = (x[:, 0] - x.mean()).square().mean()
    expected = 1e-4 / (1 + 1e-4) * (variance + (x[:, 0] - x.mean()).square() / (1 + 1e-4))
    torch.testing.assert_close((2 * log_scale).exp(), expected, rtol=1e-6, atol=0)


def test_numbers_far_from_zero_keep_their_spread():
    torch.manual_seed(0)
    x = 1e6 + torch.randn(2000, 2, dtype=torch.float64) * torch.tensor([1.0, 1e-3], dtype=torch.float64)
    weight = weights_of(2000, 1, 2)
    eta = fitted(Columns.of(Normal(), x, smoothing=0.0), x, weight)["eta"][0].unflatten(-1, (2, 2))
    share = weight[:, 0] / weight[:, 0].sum(0)
    for k in range(2):
        mean = share[:, k] @ x
        variance = share[:, k] @ (x - mean).square()
        torch.testing.assert_close((2 * eta[k, :, 1]).exp(), variance, rtol=1e-8, atol=0)


def test_an_estimate_by_numbers_never_lowers_the_value():
    """Where no closed form is at hand, the parameters before stay if the search ends below them."""
    x = rows_of([StudentT(df="learned"), Laplace()], 50)
    emission = Columns.of([StudentT(df="learned"), Laplace()], x)
    weight = weights_of(50, 1, 2)
    best = fitted(emission, x, weight)
    totals = emission.zeros(1, 2)
    emission.accumulate(totals, best, x, weight, slice(0, 50))
    again = emission.maximise(best, totals)
    value = [(weight * emission.log_prob(params, x)).sum() for params in (best, again)]
    assert value[1] >= value[0] - 1e-9


# --- which column has which likelihood ------------------------------------------------------------------------------
def test_neighbours_with_the_same_likelihood_are_one_part():
    x = torch.tensor([[0.0, 1.0, 2.0, 0.0], [1.0, 0.0, 0.0, 1.0]])
    emission = Columns.of([Normal(), Normal(), Categorical(), Normal()], x)
    assert [(part.likelihood, part.count) for part in emission.parts] == [
        (Normal(), 2),
        (Categorical(3), 1),
        (Normal(), 1),
    ]


def test_labels_are_counted_column_by_column():
    x = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0]])
    emission = Columns.of(Categorical(), x)
    assert [(part.likelihood.classes, part.count) for part in emission.parts] == [(2, 2), (3, 1)]
    assert emission.free(5) == 5 * (1 + 1 + 2)


def test_free_parameters():
    x = rows_of(MIXED, 5)
    assert Columns.of(MIXED, x).free(3) == 3 * (2 + 2 + 1 + 2 + 5 + 2 + 1)


def test_ways_to_say_the_same():
    x = torch.rand(6, 2)
    one = Columns.of(Normal(), x, ["a", "b"])
    for same in (
        [Normal(), Normal()],
        Product({"u": Normal(), "v": Normal()}),
        {"b": Normal(), "a": "normal"},
        "normal",
    ):
        assert Columns.of(same, x, ["a", "b"]).to_json() == one.to_json()


def test_parts_of_a_product_take_the_columns_of_their_names():
    x = torch.tensor([[1.0, 30.0], [2.0, 40.0]])
    both = Product({"a": Normal(), "b": Poisson()})
    for names, first in ((("b", "a"), Poisson), (("a", "b"), Normal), (("u", "v"), Normal), (None, Normal)):
        assert type(Columns.of(both, x, names).parts[0].likelihood) is first
    with pytest.raises(
        SpecError, match="likelihood has none for column 'c'; it needs one for each of the columns b, c"
    ):
        Columns.of(both, x, ["b", "c"])


def test_a_vector_takes_the_columns_that_others_leave():
    x = torch.rand(6, 4)
    emission = Columns.of([Normal(), MultivariateNormal(), Normal()], x)
    assert [part.columns for part in emission.parts] == [slice(0, 1), slice(1, 3), slice(3, 4)]
    assert emission.parts[1].likelihood == MultivariateNormal(dim=2)


def test_json_round_trip():
    x = rows_of(MIXED, 20)
    emission = Columns.of(MIXED, x, list("abcdefgh"), 1e-3)
    again = Columns.from_json(json.loads(json.dumps(emission.to_json())))
    assert again.parts == emission.parts
    assert again.smoothing == emission.smoothing
    data = emission.to_json()
    data["parts"][0]["likelihood"] = Flat().to_json()
    with pytest.raises(ModelFileError, match=r"The file has Flat\(\) where a likelihood is needed\."):
        Columns.from_json(data)


# --- bad input ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("likelihood", "message"),
    [
        ([Normal()], r"X has 2 columns, but the 1 likelihoods describe 1\."),
        ([Normal()] * 3, r"X has 2 columns, but the 3 likelihoods describe 3\."),
        (MultivariateNormal(dim=3), r"X has 2 columns, but the 1 likelihoods describe 3\."),
        ({"a": Normal()}, r"likelihood has none for column 'b'; it needs one for each of the columns a, b\."),
        ({"a": Normal(), "b": Normal(), "c": Normal()}, r"likelihood has one for 'c'; it needs one for each"),
        (3, r"likelihood must be one of the likelihood specs .*; found 3"),
        ([Normal(), 3], r"likelihood must be one of the likelihood specs .*; found 3"),
    ],
)
def test_likelihoods_that_do_not_fit_are_refused(likelihood, message):
    with pytest.raises((DataError, SpecError), match=message):
        Columns.of(likelihood, torch.rand(4, 2), ["a", "b"])


def test_a_value_outside_the_support_is_named_with_its_column_and_row():
    x = torch.ones(70_000, 3)
    x[66_000, 1] = -2.0
    with pytest.raises(DataError, match=r"column 'b' of X has a negative value \(-2.0 at row 66000\); Poisson needs"):
        Columns.of(Poisson(), x, ["a", "b", "c"])
    emission = Columns.of(Poisson(), x.abs(), ["a", "b", "c"])
    with pytest.raises(DataError, match=r"column 'b' of sequence 3 has a negative value \(-2.0 at row 66000\)"):
        emission.check(x, "sequence 3")
    single = Columns.of(Categorical(), torch.tensor([[0.0], [2.0]]))
    with pytest.raises(
        DataError, match=r"X has a value outside the support \(3.0 at row 1\); Categorical needs labels .* below 3\."
    ):
        single.check(torch.tensor([[0.0], [3.0]]))
    with pytest.raises(DataError, match=r"column '0' of X has an infinite value \(inf at row 1\)"):
        Columns.of(MultivariateNormal(), torch.tensor([[0.0, 1.0], [1.0, torch.inf]]))
