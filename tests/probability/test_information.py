import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch.distributions import MultivariateNormal

from likely.core.errors import DataError
from likely.probability import conditional_entropy, entropy, joint_entropy, kl, mutual_information

tables = (
    st.tuples(st.integers(2, 4), st.integers(2, 4))
    .flatmap(lambda shape: arrays(np.float64, shape, elements=st.integers(0, 9).map(float)))
    .filter(np.any)
    .map(lambda counts: counts / counts.sum())
)


@given(tables)
@settings(deadline=None, max_examples=150)
def test_the_chain_rule_and_the_symmetry_of_information(table):
    p_x, p_y = table.sum(1), table.sum(0)
    assert joint_entropy(table) == pytest.approx(entropy(p_y) + conditional_entropy(table))
    assert joint_entropy(table) == pytest.approx(entropy(p_x) + conditional_entropy(table, given=0))
    information = mutual_information(table)
    assert information >= 0
    assert information == pytest.approx(mutual_information(table, of=0))
    assert information == pytest.approx(entropy(p_x) - conditional_entropy(table), abs=1e-12)
    assert conditional_entropy(table) <= entropy(p_x) + 1e-12  # knowing more never leaves more unknown, on average
    assert mutual_information(np.outer(p_x, p_y)) == pytest.approx(0, abs=1e-12)


def test_conditional_entropy_is_the_mean_entropy_of_the_columns():
    table = np.array([[0.1, 0.3], [0.2, 0.4]])
    columns = sum(weight * entropy(column / weight) for column, weight in zip(table.T, table.sum(0), strict=True))
    assert conditional_entropy(table) == pytest.approx(columns)


def test_three_variables():
    table = np.random.default_rng(0).dirichlet(np.ones(24)).reshape(2, 3, 4)
    assert conditional_entropy(table, given=(0, 2)) == pytest.approx(joint_entropy(table) - entropy(table.sum(1)))
    assert mutual_information(table, of=[0, 1]) == pytest.approx(mutual_information(table.reshape(6, 4)))


def test_bivariate_gaussian_information_is_a_function_of_correlation():
    correlation = 0.8
    joint = MultivariateNormal(torch.zeros(2).double(), torch.tensor([[4.0, 1.6], [1.6, 1.0]]).double())
    assert mutual_information(joint) == pytest.approx(-0.5 * math.log(1 - correlation**2))
    assert conditional_entropy(joint) == pytest.approx(0.5 * math.log(2 * math.pi * math.e * 4 * (1 - correlation**2)))


def test_gaussian_information_is_the_divergence_from_independence():
    generator = torch.Generator().manual_seed(0)
    factor = torch.randn(4, 4, dtype=torch.float64, generator=generator)
    covariance = factor @ factor.T + torch.eye(4)
    joint = MultivariateNormal(torch.zeros(4).double(), covariance)
    apart = covariance.clone()
    apart[:2, 2:] = apart[2:, :2] = 0
    assert mutual_information(joint, of=(0, 1)) == pytest.approx(kl(joint, MultivariateNormal(joint.loc, apart)))
    assert joint_entropy(joint) == pytest.approx(
        conditional_entropy(joint, given=(1, 3))
        + 0.5 * torch.logdet(2 * math.pi * math.e * covariance[[1, 3]][:, [1, 3]])
    )


def test_the_parts_must_be_parts():
    with pytest.raises(DataError, match=r"given must name some, not all, of the joint's 2 variables; found \(0, 1\)"):
        conditional_entropy(np.full((2, 2), 0.25), given=(0, 1))
    with pytest.raises(DataError, match="of must name some, not all, of the joint's 2 variables; found 5"):
        mutual_information(np.full((2, 2), 0.25), of=5)
    with pytest.raises(DataError, match="joint sums to 4"):
        joint_entropy(np.ones((2, 2)))
