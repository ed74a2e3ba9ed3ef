"""Where training begins: the log-odds, frequencies and edges that cells have without a look at the image."""

from __future__ import annotations

import torch

from likely.likelihoods import Laplace
from likely.models.detection.cells import cell_likelihood
from likely.models.detection.grids import Grids
from likely.models.detection.start import base_rates

GRIDS = Grids((4, 8), (8, 16))  # 8 cells and 2


def cells(images, seed=0):
    """Targets (images, 10, 6): presence, one of two classes, four edges; every third cell has an object."""
    generator = torch.Generator().manual_seed(seed)
    targets = torch.full((images, GRIDS.count, 6), torch.nan)
    targets[..., 0] = (torch.arange(images * GRIDS.count).reshape(images, -1) % 3 == 0).float()
    present = targets[..., 0] == 1
    own = torch.rand(int(present.sum()), 5, generator=generator)
    own[:, 0] = (own[:, 0] < 0.8).float()
    targets[present] = torch.cat([torch.ones(len(own), 1), own], 1)
    return targets


def test_cells_begin_at_their_base_rates():
    targets = cells(60)
    offset, unit = base_rates(cell_likelihood(2, Laplace("input")), targets, GRIDS)
    assert bool((unit > 0).all())
    for level in range(2):
        own = targets[:, GRIDS.level == level]
        present = own[..., 0] == 1
        odds = (present.sum() + 0.5) / ((~present).sum() + 0.5)
        torch.testing.assert_close(offset[level, 0], odds.log())
        likelihood = cell_likelihood(2, Laplace("input"))
        start = likelihood.distribution(offset[level].double()).log_prob(own[present].double()).mean()
        for place in range(1, len(offset[level])):  # no step to a side is more probable
            for step in (-0.2, 0.2):
                moved = offset[level].double().clone()
                moved[place] += step
                assert likelihood.distribution(moved).log_prob(own[present].double()).mean() <= start + 1e-3


def test_a_grid_of_few_boxes_begins_with_the_edges_of_all():
    targets = cells(9)
    few = targets.clone()
    few[3:, GRIDS.level == 1, 0], few[3:, GRIDS.level == 1, 1:] = 0.0, torch.nan
    likelihood = cell_likelihood(2, Laplace("input"))
    offset, _ = base_rates(likelihood, few, GRIDS)
    every, _ = base_rates(likelihood, few.reshape(-1, 1, 6), Grids((4,), (4, 4)))
    torch.testing.assert_close(offset[1, 1:], every[0, 1:])
    assert not torch.equal(offset[0, 1:], every[0, 1:])


def test_a_weight_of_two_is_an_image_twice():
    targets, weight = cells(12), torch.tensor([2.0, 1.0, 0.0] * 4)
    repeated = targets.repeat_interleave(weight.long(), 0)
    likelihood = cell_likelihood(2, Laplace("input"))
    weighted = base_rates(likelihood, targets, GRIDS, weight)
    for own, other in zip(weighted, base_rates(likelihood, repeated, GRIDS), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-5)
