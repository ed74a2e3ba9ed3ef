"""The graph of a table: learned from its whole rows, and a network like any other."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.bayesian_network.structure.drawn import collider

import likely
from likely import BayesianNetwork
from likely.core.errors import DataError, LikelyWarning
from likely.models.bayesian_network import ChowLiu, structural_hamming_distance


def test_a_learned_network_is_a_network(tmp_path):
    """It answers, is saved with its edges, and a repeated fit is the same."""
    rows = collider(1, 400)
    model = BayesianNetwork(structure="chow_liu(root='wet')", smoothing=1.0).fit(rows)
    assert model.factorisation().startswith("p(wet)")
    model.save(tmp_path / "m.likely")
    np.testing.assert_array_equal(likely.load(tmp_path / "m.likely").log_prob(rows), model.log_prob(rows))
    climbed = [BayesianNetwork(random_state=3).fit(rows).edges_ for _ in range(2)]
    assert climbed[0] == climbed[1]
    array = np.column_stack(list(rows.values()))
    assert BayesianNetwork(structure=ChowLiu()).fit(array).names_ == ["x0", "x1", "x2", "x3"]
    assert BayesianNetwork().fit({"a": [0, 1, 1], "b": ["x", "x", "x"]}, sample_weight=[1, 2, 0]).names_ == ["a", "b"]


def test_rows_with_gaps_do_not_count_for_edges():
    rows = collider(2, 1000)
    holes = {
        name: [None if place % 10 == 0 else value for place, value in enumerate(own)] for name, own in rows.items()
    }
    whole = {name: own[np.arange(1000) % 10 > 0] for name, own in rows.items()}
    with pytest.warns(LikelyWarning, match="learned from the 900 of 1000 rows that have no gaps"):
        model = BayesianNetwork(structure=ChowLiu()).fit(holes)
    assert model.edges_ == BayesianNetwork(structure=ChowLiu()).fit(whole).edges_


@pytest.mark.parametrize("network_name", ["asia"])
def test_asia_is_found_in_its_rows(shared_data, network_name):
    """No further from the truth than one search without restarts of a peer (5 of 8 edges); mostly 0 or 1."""
    model = BayesianNetwork.from_bif(shared_data / f"{network_name}.bif")
    learned = BayesianNetwork(smoothing=1.0, random_state=0).fit(model.sample(5000, random_state=0))
    assert structural_hamming_distance(learned.edges_, model.edges_) <= 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"a": np.arange(300)}, r"'a' \(300 different values\) has too many: .*pandas.qcut"),
        ({"a": [f"w{place}" for place in range(300)]}, r"'a' \(300 different values\) has too many: .* group their"),
        ({"a": [0, None], "b": [None, 1]}, "learned from rows without gaps, and there is none"),
    ],
)
def test_what_has_no_graph_is_refused(rows, message):
    with pytest.raises(DataError, match=message):
        BayesianNetwork().fit(rows)
