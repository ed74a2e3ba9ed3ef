from __future__ import annotations

import numpy as np
import pytest
import torch

from likely.likelihoods import Laplace
from likely.models.detection.cells import cell_likelihood
from likely.models.detection.detections import Detections, decided, seen
from likely.models.detection.grids import Grids


def test_members_are_averaged_with_the_variance_within_and_between_them():
    """Two members, one cell: P and the edges are weighted by how probable an object is to each."""
    likelihood, grids = cell_likelihood(2, Laplace(0.1)), Grids((8,), (8, 8))
    eta = torch.zeros(2, 1, 1, 7)
    eta[0, ..., 0], eta[1, ..., 0] = np.log(3.0), -np.log(3.0)  # 3/4 and 1/4
    eta[0, ..., 1], eta[1, ..., 2] = 100.0, 100.0  # sure of either class
    eta[0, ..., 3:], eta[1, ..., 3:] = 0.0, np.log(0.5)
    classes, edges, variances = seen(likelihood, grids, eta, torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(classes[0, 0], torch.tensor([0.375, 0.125]))
    expected = 0.75 * torch.tensor([0.0, 0.0, 8.0, 8.0]) + 0.25 * torch.tensor([4.0, 4.0, 4.0, 4.0])
    torch.testing.assert_close(edges[0, 0], expected)
    within = 0.75 * 2 * (0.1 * 8) ** 2 + 0.25 * 2 * (0.1 * 4) ** 2
    torch.testing.assert_close(variances[0, 0], torch.full((4,), within + 0.75 * 0.25 * 16))


def test_cells_that_see_one_object_are_one_detection():
    classes = torch.tensor([[[0.5], [0.4], [0.3]]])
    edges = torch.tensor([[[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 9.0], [50.0, 0.0, 60.0, 10.0]]])
    (boxes, labels, probabilities, scales), = decided(
        classes, edges, torch.ones(1, 3, 4), threshold=0.0, overlap=0.5, most=10
    )  # fmt: skip
    torch.testing.assert_close(probabilities, torch.tensor([1 - 0.5 * 0.6, 0.3]))
    torch.testing.assert_close(boxes[0], torch.tensor([0.0, 0.0, 10.0, (5 + 3.6) / 0.9]))
    between = (5 * 10**2 + 4 * 9**2) / 9 - ((5 * 10 + 4 * 9) / 9) ** 2
    torch.testing.assert_close(scales[0], torch.tensor([1.0, 1.0, 1.0, (1 + between) ** 0.5]), atol=1e-4, rtol=1e-4)
    assert labels.tolist() == [0, 0]


@pytest.mark.parametrize(("threshold", "most", "count"), [(0.5, 10, 1), (0.0, 1, 1), (0.0, 10, 2)])
def test_improbable_and_many_are_left_out(threshold, most, count):
    edges = torch.tensor([[[0.0, 0.0, 10.0, 10.0], [50.0, 0.0, 60.0, 10.0]]])
    (answer,) = decided(
        torch.tensor([[[0.3], [0.7]]]), edges, torch.ones(1, 2, 4), threshold=threshold, overlap=0.5, most=most
    )
    assert len(answer[0]) == count
    assert float(answer[2][0]) == pytest.approx(0.7)


def test_detections_are_values():
    one = Detections(np.ones((2, 4)), np.array(["a", "b"]), np.array([0.9, 0.2]), np.ones((2, 4)))
    assert one == one.above(0.0)
    assert one != one.above(0.5)
    assert repr(one) == "Detections(a 0.90, b 0.20)"
    assert np.asarray(one).shape == (2, 9)
