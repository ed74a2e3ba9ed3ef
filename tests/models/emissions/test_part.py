"""One likelihood and its columns: the same numbers as the likelihood alone, column by column."""

from __future__ import annotations

import pytest
import torch

from likely.core.errors import DataError, ModelFileError
from likely.likelihoods import MultivariateNormal, Normal, Poisson, Target
from likely.models.emissions.part import Part, blocks

X = torch.tensor([[9.0, 1.0, 4.0], [9.0, torch.nan, 0.0], [9.0, 3.0, 2.0]], dtype=torch.float64)
COUNTS = Part(Poisson(), slice(1, 3), Target(), ("left", "right"))
PAIR = Part(MultivariateNormal(dim=2), slice(1, 3), MultivariateNormal(dim=2).known_target(), ("left", "right"))


def test_a_part_speaks_of_each_column_or_of_all_as_one():
    assert (COUNTS.count, COUNTS.size, tuple(COUNTS.of(X).shape)) == (2, 2, (3, 2))
    assert (PAIR.count, PAIR.size, tuple(PAIR.of(X).shape)) == (1, 5, (3, 1, 2))
    assert tuple(COUNTS.split(torch.zeros(7, 2)).shape) == (7, 2, 1)


@pytest.mark.parametrize("rows", [slice(0, 3), slice(2, 3)], ids=["missing", "complete"])
def test_log_prob_sums_over_the_columns_that_are_there(rows):
    eta = torch.tensor([[0.1, 0.7], [-1.0, 1.2], [0.0, 0.3]], dtype=torch.float64)
    rate, x = eta.exp(), X[rows, 1:]
    log_prob = torch.xlogy(x[:, None], rate) - rate - torch.lgamma(x[:, None] + 1)
    torch.testing.assert_close(COUNTS.log_prob(eta, X[rows]), log_prob.nan_to_num(nan=0.0).sum(-1))


def test_a_vector_that_misses_a_value_does_not_count():
    eta = torch.randn(4, PAIR.size, dtype=torch.float64)
    values = PAIR.log_prob(eta, X)
    assert values[1].tolist() == [0.0] * 4
    for k in range(4):
        expected = MultivariateNormal(dim=2).log_prob(eta[k], X[[0, 2], 1:])
        torch.testing.assert_close(values[[0, 2], k], expected)


@pytest.mark.parametrize("part", [COUNTS, Part(Normal(), slice(1, 3), Target(), ("left", "right")), PAIR])
def test_sums_are_the_weighted_measures_of_rows(part):
    weight, origin = torch.rand(3, 4, dtype=torch.float64), torch.tensor([0.0, 1.5, 2.0], dtype=torch.float64)
    measured, sums = part.measured(X, origin), part.sums(X, weight, origin)
    assert tuple(sums.shape) == (4, part.count, part.width())
    torch.testing.assert_close(sums, torch.einsum("nk,ncm->kcm", weight, measured))
    seen = ~X[:, 1:].isnan()
    seen = seen.all(1, keepdim=True) if part.likelihood.event_dim else seen
    torch.testing.assert_close(measured[..., 0], seen.double())


def test_a_value_outside_the_support_is_named_by_its_column():
    wrong = X.clone()
    wrong[2, 2] = -1.0
    with pytest.raises(DataError, match="right"):
        COUNTS.check(wrong)


def test_a_file_with_other_columns_is_refused():
    data = {
        "likelihood": Poisson().to_json(),
        "columns": [1, 3],
        "target": Target().to_json(),
        "names": ["left", "right"],
    }
    assert Part.from_json(data, 1) == COUNTS
    for change in ({"columns": [1, 2]}, {"names": ["left"]}, {"target": Target((2,)).to_json()}):
        with pytest.raises(ModelFileError, match=r"The file has Poisson\(\) of"):
            Part.from_json(data | change, 1)
    with pytest.raises(ModelFileError, match="cannot have: they are not finite"):
        COUNTS.check_eta(torch.tensor([[0.0, torch.nan]], dtype=torch.float64))


def test_blocks_are_all_rows_in_order():
    rows = torch.arange(3 * 2**18).reshape(-1, 3)
    parts = blocks(rows)
    assert len(parts) > 1
    assert torch.equal(torch.cat(parts), rows)
