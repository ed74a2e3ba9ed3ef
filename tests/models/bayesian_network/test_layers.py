from itertools import pairwise

import numpy as np
import pytest

from likely.models.bayesian_network.dag import Dag
from likely.models.bayesian_network.layers import BEND, draw_layers


@pytest.mark.parametrize("seed", range(10))
def test_children_are_below_parents_and_nothing_lies_on_another(network, seed):
    dag = network(seed, 12)[0].dag
    drawing = draw_layers(dag)
    rows: dict[float, list[tuple[float, float]]] = {}
    for x, layer in drawing.places:
        rows.setdefault(layer, []).append((x, 1.0))
    for (parent, child), bends in drawing.bends.items():
        assert bends[:, 1].tolist() == list(range(int(drawing.places[parent, 1]) + 1, int(drawing.places[child, 1])))
        assert drawing.places[parent, 1] < drawing.places[child, 1]
        for x, layer in bends:
            rows[layer].append((x, BEND))
    for row in rows.values():
        row.sort()
        for (left, room), (right, next_room) in pairwise(row):
            assert right - left >= (room + next_room) / 2 - 1e-9
    assert len(drawing.bends) == sum(len(parents) for parents in dag.parents)


def test_a_graph_that_needs_no_crossing_has_none():
    """Two chains whose names come interleaved: sorted, they lie side by side."""
    dag = Dag.from_edges(["a", "b", ("a", "d"), ("b", "c"), ("c", "f"), ("d", "e"), "g"])
    x = dict(zip(dag.names, draw_layers(dag).places[:, 0], strict=True))
    left, right = sorted([("a", "d", "e"), ("b", "c", "f")], key=lambda chain: x[chain[0]])
    assert all(x[one] < x[other] for one, other in zip(left, right, strict=True))
    np.testing.assert_allclose(np.ptp([x[name] for name in left]), 0, atol=0.3)
