"""What every generative model shares, held by the smallest one: independent normal columns."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import nn

import likely
from likely.core.errors import DataError
from likely.core.random import current_generator
from likely.inference import HMC, MAP, Ensemble, Variational
from likely.models.generative.base import _Generative
from likely.models.generative.module import DensityModule
from likely.optim import Adam
from likely.priors import Flat, Normal


class Bell(DensityModule):
    """Columns are normal, with means that a condition shifts."""

    def __init__(self, width, condition):
        super().__init__()
        self.mean, self.log_scale = nn.Parameter(torch.zeros(1, width)), nn.Parameter(torch.zeros(1, width))
        self.shift = None if condition is None else nn.Parameter(torch.zeros(*condition, width))

    def adapt(self, x, condition, weight):
        with torch.no_grad():
            self.mean.copy_(x.nanmean(0))

    def middle(self, condition):
        return self.mean if condition is None else self.mean + condition @ self.shift

    def forward(self, x, condition=None):
        gone, x = x.isnan(), x.nan_to_num()
        z = (x - self.middle(condition)) * torch.exp(-self.log_scale)
        log_prob = -0.5 * z.square() - self.log_scale - 0.5 * math.log(2 * math.pi)
        return torch.where(gone, 0.0, log_prob).sum(-1)

    def sample(self, count, condition=None):
        noise = torch.randn(count, self.mean.shape[1], generator=current_generator(), dtype=self.mean.dtype)
        return self.middle(condition) + self.log_scale.exp() * noise

    def complete(self, x, condition, draws):
        new = torch.stack([self.sample(len(x), condition) for _ in range(draws)])
        return torch.where(x.isnan(), new, x)


class BellDensity(_Generative):
    """p(x) = Π Normal(xⱼ)."""

    def __init__(self, prior=Flat(), inference="auto", random_state=None, device="auto", verbose=False):  # noqa: B008
        self.prior, self.inference, self.random_state = prior, inference, random_state
        self.device, self.verbose = device, verbose

    def _module(self):
        return Bell(self.form_.shape[0], None if self.condition_ is None else self.condition_.shape)

    def _marginalises(self):
        return True


QUICK = MAP(Adam(0.05), epochs=150, batch_size=None)
ROWS = np.random.default_rng(0).normal([2.0, -1.0], [1.0, 3.0], (300, 2))


def bell(**options):
    return BellDensity(**{"inference": QUICK, "random_state": 0} | options)


def exact(rows, mean, scale):
    return (-0.5 * ((rows - mean) / scale) ** 2 - np.log(scale) - 0.5 * math.log(2 * math.pi)).sum(1)


def test_maximum_likelihood_of_a_normal_is_mean_and_deviation():
    model = bell().fit(ROWS)
    np.testing.assert_allclose(model.log_prob(ROWS), exact(ROWS, ROWS.mean(0), ROWS.std(0)), atol=2e-2)
    assert model.score(ROWS) == pytest.approx(model.log_prob(ROWS).mean())


def test_log_prob_of_several_members_is_the_log_of_their_mean():
    model = bell(inference=Ensemble(3, by=MAP(Adam(0.05), epochs=2))).fit(ROWS)
    parts = []
    for member in range(3):
        values, _ = model.posterior_.member(member)
        parts.append(exact(ROWS, values["mean"].numpy(), values["log_scale"].exp().numpy()))
    expected = np.logaddexp.reduce(parts, 0) - math.log(3)
    answer, error = model.log_prob(ROWS, return_error=True)
    np.testing.assert_allclose(answer, expected, rtol=1e-5)
    assert not error.any()


def test_rows_from_several_members_come_from_all_of_them():
    spread = Variational(steps=300, draws=20)
    model = bell(inference=spread, prior=Normal(1.0)).fit(ROWS[:5])
    new = model.sample(2000, random_state=1)
    assert new.shape == (2000, 2)
    assert new[:, 0].std() > float(model.posterior_.parameters["log_scale"].exp().mean((0, 1))[0]) * 0.9


@pytest.mark.parametrize("inference", [QUICK, Ensemble(2, by=MAP(epochs=2)), HMC(chains=2, draws=5, warmup=10)])
def test_a_file_gives_the_same_answers(inference, tmp_path):
    model = bell(inference=inference, prior=Normal(1.0, biases=Normal(1.0))).fit(ROWS, np.arange(300) % 2)
    model.save(tmp_path / "bell.likely")
    again = likely.load(tmp_path / "bell.likely")
    condition = np.arange(300) % 2
    np.testing.assert_array_equal(again.log_prob(ROWS, condition), model.log_prob(ROWS, condition))
    np.testing.assert_array_equal(again.sample(5, 1, random_state=3), model.sample(5, 1, random_state=3))


def test_a_condition_moves_the_density():
    condition = np.where(np.arange(300) % 2, "up", "down")
    shifted = ROWS + 5 * (condition == "up")[:, None]
    model = bell(inference=MAP(Adam(0.05), epochs=400, batch_size=None)).fit(shifted, condition)
    gap = model.sample(4000, "up", random_state=0).mean(0) - model.sample(4000, "down", random_state=0).mean(0)
    np.testing.assert_allclose(gap, [5.0, 5.0], atol=1.0)
    assert model.log_prob(shifted, condition).mean() > model.log_prob(shifted, condition[::-1]).mean()


@pytest.mark.parametrize("library", [pd, pl])
def test_a_table_in_gives_a_table_out(library):
    frame = library.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1]})
    model = bell().fit(frame)
    new = model.sample(7, random_state=0)
    assert isinstance(new, library.DataFrame)
    assert list(new.columns) == ["a", "b"]
    assert len(model.log_prob(frame)) == 300


def test_some_columns_may_be_fixed():
    model = bell().fit(pl.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1]}))
    new = model.sample(50, {"a": 1.5}, random_state=0)
    assert new["a"].to_list() == [1.5] * 50
    assert new["b"].n_unique() == 50
    array = bell().fit(ROWS).sample(4, {1: 2.0}, random_state=0)
    assert array[:, 1].tolist() == [2.0] * 4


def test_missing_values_are_filled_by_means_or_draws():
    holes = ROWS.copy()
    holes[:40, 1] = np.nan
    model = bell().fit(holes)
    filled = model.impute(holes)
    np.testing.assert_array_equal(filled[40:], holes[40:])
    assert abs(filled[:40, 1].mean() - holes[40:, 1].mean()) < 6 * 3 / math.sqrt(40 * 64) + 0.2
    several = model.impute(holes, draws=3, random_state=0)
    assert len(several) == 3
    assert not np.array_equal(several[0], several[1])


def test_an_integer_seed_repeats_its_draws():
    model = bell().fit(ROWS)
    np.testing.assert_array_equal(model.sample(5, random_state=4), model.sample(5, random_state=4))
    assert not np.array_equal(model.sample(5, random_state=4), model.sample(5, random_state=5))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.fit(ROWS[:1]), "needs 2 rows or more"),
        (lambda m: m.fit(ROWS, [0, 1]), "condition has 2 rows, but X has 300"),
        (lambda m: m.fit(np.column_stack([ROWS, np.full(300, np.nan)])), "Column 2 of X has no value in any row"),
        (lambda m: m.fit(ROWS).log_prob(ROWS, [0] * 300), "was fitted without a condition"),
        (lambda m: m.fit(ROWS, [0, 1, 2] * 100).sample(3), "condition is missing"),
        (lambda m: m.fit(ROWS, [0, 1, 2] * 100).sample(3, 7), "condition has 7 at row 0, which training did not show"),
        (lambda m: m.fit(ROWS, [0, 1, 2] * 100).sample(3, [0, 1]), "must have 1, or n = 3"),
        (lambda m: m.fit(ROWS).sample(3, {5: 0.0}), "names a column 5; the model has columns 0 to 1"),
        (lambda m: m.fit(ROWS).log_prob(ROWS, draws=5), "exact log_prob: it takes no draws"),
    ],
)
def test_bad_input_is_named(ask, message):
    with pytest.raises(DataError, match=message):
        ask(bell(inference=MAP(epochs=1)))


def test_blocks_of_rows_are_filled_and_drawn_apart(monkeypatch):
    """Rows that are alike but for their draws have draws of their own, however few rows are asked about together."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = likely.Flow("affine", layers=1, inference=MAP(epochs=1), random_state=0).fit(X)
    gaps = np.column_stack([np.ones(100), np.full(100, np.nan)])
    whole = model.impute(gaps)
    monkeypatch.setattr("likely.models.generative.base.BLOCK", 1)
    assert len(np.unique(model.impute(gaps, draws=1, random_state=0)[0][:, 1])) == 100
    assert len(np.unique(model.sample(100, random_state=0)[:, 1])) == 100
    filled = model.impute(gaps)
    assert len(np.unique(filled[:, 1])) == 100
    assert filled[:, 1].mean() == pytest.approx(whole[:, 1].mean(), abs=6 * whole[:, 1].std() / 10 * 2**0.5)
