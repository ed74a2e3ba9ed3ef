from __future__ import annotations

import pytest
import torch

from likely.core.errors import DataError, SpecError
from likely.likelihoods import Categorical, MultivariateNormal, NegativeBinomial, Normal, Poisson, Product, Target


@pytest.fixture
def mixed():
    return Product({"size": Normal(), "kind": Categorical(), "count": NegativeBinomial()})


@pytest.fixture
def data(generator):
    """Twelve rows of a number, a label of three, and a count; and an η: 1 + 3 + 1 numbers of x, then 2 constants."""
    y = torch.stack([torch.randn(12), torch.arange(12.0) % 3, torch.arange(12.0) % 5], -1).double()
    return torch.randn(12, 7, dtype=torch.float64), y


def test_nll_is_the_sum_of_the_parts(mixed, data):
    eta, y = data
    parts = [
        Normal().log_prob(eta[:, [0, 5]], y[:, 0]),
        Categorical().log_prob(eta[:, 1:4], y[:, 1]),
        NegativeBinomial().log_prob(eta[:, [4, 6]], y[:, 2]),
    ]
    torch.testing.assert_close(mixed.log_prob(eta, y), sum(parts))
    torch.testing.assert_close(mixed.distribution(eta).log_prob(y), sum(parts))


def test_target_size_and_shared_are_sums(mixed, data):
    target = mixed.target(data[1])
    assert target == Target(shape=(3,), parts=(Target(), Target(classes=3), Target()))
    assert (mixed.size(target), mixed.shared(target)) == (7, 2)
    assert mixed.target_of(7) == target


def test_a_missing_part_does_not_count(mixed, data):
    eta, y = data
    gone = y.clone()
    gone[:, 1] = torch.nan
    expected = Normal().log_prob(eta[:, [0, 5]], y[:, 0]) + NegativeBinomial().log_prob(eta[:, [4, 6]], y[:, 2])
    point = eta.clone().requires_grad_()
    log_prob = mixed.log_prob(point, gone)
    torch.testing.assert_close(log_prob, expected)
    torch.testing.assert_close(mixed.distribution(eta).log_prob(gone), expected)
    (slope,) = torch.autograd.grad(log_prob.sum(), point)
    assert bool((slope[:, 1:4] == 0).all())
    assert not bool(mixed.missing(gone).any())


def test_estimates_are_those_of_the_parts(mixed, data):
    _, y = data
    weight = torch.rand(12, dtype=torch.float64)
    y[3, 0] = torch.nan
    together = mixed.weighted_mle(y, weight)
    seen = ~torch.isnan(y[:, 0])
    torch.testing.assert_close(together[[0, 5]], Normal().weighted_mle(y[seen, 0], weight[seen]))
    torch.testing.assert_close(together[1:4], Categorical().weighted_mle(y[:, 1], weight))
    torch.testing.assert_close(together[[4, 6]], NegativeBinomial().weighted_mle(y[:, 2], weight))
    offset, unit = mixed.baseline(y, weight)
    torch.testing.assert_close(offset, together)
    torch.testing.assert_close(unit[0], Normal().baseline(y[seen, 0], weight[seen])[1][0])


def test_a_vector_takes_the_columns_that_others_leave(generator):
    product = Product({"count": Poisson(), "vector": MultivariateNormal(), "label": Categorical(classes=2)})
    y = torch.randn(10, 5).abs().round().clamp_max(1)
    target = product.target(y)
    assert target.parts[1] == Target(shape=(3,))
    eta = torch.randn(10, product.size(target))
    assert product.distribution(eta).event_shape == (5,)
    assert product.log_prob(eta, y).shape == (10,)
    assert bool(product.support.check(y).all())


def test_products_nest(generator):
    inner = Product({"a": Normal(scale=1.0), "b": Poisson()})
    outer, flat = (
        Product({"c": Poisson(), "d": inner}),
        Product({"c": Poisson(), "a": Normal(scale=1.0), "b": Poisson()}),
    )
    eta = torch.randn(5, 3)
    y = flat.distribution(eta).sample()
    torch.testing.assert_close(outer.log_prob(eta, y), flat.log_prob(eta, y))


def test_messages():
    both = Product({"height": Normal(), "visits": Poisson()})
    with pytest.raises(
        DataError, match=r"column 'visits' of y has a negative value \(-1.0 at row 1\); Poisson needs counts"
    ):
        both.check(torch.tensor([[0.0, 1.0], [0.0, -1.0]]))
    with pytest.raises(
        DataError, match=r"y has shape \(4, 3\); Product needs 2 columns: a column for each part: height"
    ):
        both.check(torch.zeros(4, 3))
    with pytest.raises(DataError, match=r"y has shape \(4,\); Product needs 2 columns"):
        both.check(torch.zeros(4))
    with pytest.raises(SpecError, match=r"except one \(a, b are not\): say classes= or dim="):
        Product({"a": Categorical(), "b": Categorical()})
    with pytest.raises(SpecError, match="parts must be a dict from names to likelihoods"):
        Product({})
    with pytest.raises(SpecError, match='named by words other than "spec"'):
        Product({"spec": Normal()})
