from __future__ import annotations

import math

import pytest
import torch

from likely.inference.dataset import Batch
from likely.likelihoods import Laplace, Normal
from likely.models.detection.cells import CellObjective, cell_likelihood
from likely.models.detection.grids import EDGES


@pytest.mark.parametrize(("edge", "density"), [(Laplace("input"), torch.distributions.Laplace),
                                               (Normal("input"), torch.distributions.Normal)])  # fmt: skip
def test_log_prob_is_the_sum_over_cells_by_hand(edge, density):
    """One image of 8 × 16 pixels, two cells, a box of class 2 in the second."""
    torch.manual_seed(0)
    objective = CellObjective(cell_likelihood(3, edge), (8,), 8)
    box = [9.0, 1.0, 15.0, 6.0]
    eta = torch.randn(1, 2, 1 + 3 + 8)
    batch = Batch(torch.zeros(1, 1, 8, 16), torch.tensor([[[*box, 2.0], [torch.nan] * 5]]), None)
    presence, label, edges = eta[0, :, 0], eta[0, 1, 1:4].log_softmax(0), eta[0, 1, 4:].view(4, 2)
    distances = torch.tensor([16 - box[0], 8 - box[1], box[2] - 8, box[3] - 0])
    by_hand = torch.sigmoid(-presence[0]).log() + torch.sigmoid(presence[1]).log() + label[2]
    for (location, log_scale), distance in zip(edges, distances, strict=True):
        by_hand = by_hand + density(location, log_scale.exp()).log_prob((distance / 8).log()) - distance.log()
    torch.testing.assert_close(objective.log_prob(eta, batch)[0], by_hand)


def test_log_prob_is_a_density_of_edges_in_pixels():
    """The mass of one edge over all pixels where it may be, times the rest, is the rest: numerically."""
    objective = CellObjective(cell_likelihood(1, Laplace(0.1)), (8,), 8)
    eta = torch.zeros(1, 1, 5)
    left = torch.linspace(-60, 7.999, 40_001)
    objects = torch.tensor([0.0, 1.0, 9.0, 7.0, 0.0]).repeat(len(left), 1)
    objects[:, 0] = left
    inside = left > -9  # the centre stays in the cell
    batch = Batch(torch.zeros(1, 1, 8, 8), objects[inside].unsqueeze(1), None)
    mass = torch.trapezoid(objective.log_prob(eta.expand(int(inside.sum()), 1, 5), batch).exp(), left[inside])
    rest = math.log(0.5)
    for distance in (8 - 1.0, 9.0, 7.0):
        laplace = torch.distributions.Laplace(0.0, 0.1)
        rest += float(laplace.log_prob(torch.tensor(distance / 8).log())) - math.log(distance)
    assert float(mass) == pytest.approx(math.exp(rest), rel=1e-2)


def test_one_class_needs_no_label():
    assert list(cell_likelihood(1, Laplace("input")).parts) == ["presence", *EDGES]
