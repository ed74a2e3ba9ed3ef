import numpy as np
import pytest

from likely.core.errors import DataError, SpecError
from likely.models.bayesian_network.dag import Dag
from likely.models.bayesian_network.labels import Labels, check_states

DAG = Dag.from_edges([("rain", "wet")])
LABELS = Labels(DAG, {"rain": ["no", "yes"], "wet": [0, 1, 2]})


def test_evidence_and_soft_evidence_become_codes_and_weights():
    assert LABELS.evidence({"wet": np.int64(2), "rain": "no"}).tolist() == [[0, 2]]
    assert LABELS.evidence(None).tolist() == [[-1, -1]]
    weights, scale = LABELS.soft({"wet": {0: 1.0, 2: 4.0}})
    assert weights.tolist() == [1, 1, 0.25, 0, 1]
    assert scale == np.log(4)
    assert LABELS.soft({}) == (None, 0.0)


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"rian": "no"}, r"There is no variable 'rian'\. Did you mean 'rain'\?"),
        ({"rain": "Yes"}, r"'Yes' is not a state of 'rain'\. Did you mean 'yes'\?"),
        ({"wet": 7}, r"7 is not a state of 'wet'\. There are 0, 1, 2\."),
        ({"wet": [0]}, r"\[0\] is not a state of 'wet'"),
        (["rain"], "evidence must be a dict; found a list"),
    ],
)
def test_unknown_evidence_is_refused(evidence, message):
    with pytest.raises(DataError, match=message):
        LABELS.evidence(evidence)


@pytest.mark.parametrize(
    ("soft", "message"),
    [
        ({"rain": "yes"}, r"soft\['rain'\] must be a dict; found a str"),
        ({"rain": {"yes": -1}}, r"soft\['rain'\]\['yes'\] is -1; weights are finite and not negative"),
        ({"rain": {"yes": float("nan")}}, "is nan; weights are finite"),
        ({"rain": {"maybe": 1}}, "'maybe' is not a state of 'rain'"),
    ],
)
def test_other_soft_evidence_is_refused(soft, message):
    with pytest.raises(DataError, match=message):
        LABELS.soft(soft)


@pytest.mark.parametrize("states", [["a", "a"], [], "ab", [None], [1, "a"], [float("nan")], 3])
def test_states_are_different_values_of_one_kind(states):
    with pytest.raises(SpecError, match=r"states\['rain'\] is .*; it must list different states of one kind"):
        check_states({"rain": states}, DAG)


def test_states_of_numpy_become_plain():
    states = check_states({"wet": np.arange(3)}, DAG)
    assert states == {"wet": [0, 1, 2]}
    assert {type(state) for state in states["wet"]} == {int}
    with pytest.raises(SpecError, match=r"states must be \{variable"):
        check_states(["a"], DAG)
