from __future__ import annotations

import pytest
import torch

from likely.core.errors import DataError
from likely.core.random import drawing
from likely.core.spec import Spec, registered
from likely.decoding import Beam, Decoding, Exhaustive, Greedy, Sample
from likely.decoding.base import taken

WAYS = [Greedy(), Sample(), Sample(0.7, top_k=2, top_p=0.8), Beam(2), Beam(3, length_penalty=0.6), Exhaustive()]
PROMPT = torch.tensor([[1, 2, 0], [0, -1, -1], [-1, -1, -1], [2, 2, -1]])


def words(decoded, row):
    return [token for token in decoded.tokens[row].tolist() if token >= 0]


def test_every_way_is_tried_here():
    assert {type(way).__name__ for way in WAYS} == set(registered(Decoding))
    for way in WAYS:
        assert Spec.from_json(way.to_json()) == way


@pytest.mark.parametrize("end", [None, 1])
@pytest.mark.parametrize("way", WAYS, ids=repr)
def test_scores_are_the_sums_they_claim_to_be(way, end, table):
    with drawing(0):
        decoded = way.decode(table.step, table.start(), table.first, 3, end=end)
    for row in range(4):
        tokens = words(decoded, row)
        assert decoded.log_prob[row].item() == pytest.approx(table.score(row, tokens), abs=1e-12)
        assert len(tokens) == 3 or tokens[-1] == end
        assert end not in tokens[:-1]


@pytest.mark.parametrize("end", [None, 1])
@pytest.mark.parametrize("way", WAYS, ids=repr)
def test_prompts_are_kept_and_do_not_count(way, end, table):
    with drawing(0):
        decoded = way.decode(table.step, table.start(), table.first, 2, end=end, prompt=PROMPT)
    for row in range(4):
        prompt, tokens = [token for token in PROMPT[row].tolist() if token >= 0], words(decoded, row)
        assert tokens[: len(prompt)] == prompt
        assert 1 <= len(tokens) - len(prompt) <= 2
        assert decoded.log_prob[row].item() == pytest.approx(table.score(row, tokens, len(prompt)), abs=1e-12)


@pytest.mark.parametrize("way", [way for way in WAYS if not isinstance(way, Sample)], ids=repr)
def test_rows_together_are_rows_one_by_one(way, table):
    together = way.decode(table.step, table.start(), table.first, 2, end=1, prompt=PROMPT)
    for row in range(4):
        one = torch.tensor([row])
        prompt = PROMPT[one][:, : int((PROMPT[row] >= 0).sum())]
        alone = way.decode(table.step, taken(table.start(), one), table.first[one], 2, end=1, prompt=prompt)
        assert words(alone, 0) == words(together, row)
        assert alone.log_prob.item() == together.log_prob[row].item()


@pytest.mark.parametrize("way", [way for way in WAYS if not isinstance(way, Exhaustive)], ids=repr)
def test_python_goes_over_steps_and_not_over_rows(way, table):
    with drawing(0):
        way.decode(table.step, table.start(), table.first, 5)
    assert table.calls == 5


@pytest.mark.parametrize("way", WAYS, ids=repr)
def test_it_stops_when_all_rows_have_ended(way):
    def sure(state, tokens):
        state.append(1)
        return torch.tensor([[0.0, -torch.inf, -torch.inf]]).expand(len(tokens), 3), state

    calls = []
    with drawing(0):
        decoded = way.decode(sure, calls, torch.zeros(2, dtype=torch.long), 9, end=0)
    assert decoded.tokens.tolist() == [[0], [0]]
    assert decoded.log_prob.tolist() == [0.0, 0.0]


def test_a_length_that_will_not_do_is_named(table):
    for length in (0, -1, 1.5):
        with pytest.raises(DataError, match=f"length={length}: how many tokens to choose must be an integer above 0"):
            Greedy().decode(table.step, table.start(), table.first, length)


def test_states_of_any_form_are_taken_by_row():
    state = {"a": [torch.arange(3), (torch.eye(3), None)], "b": 7}
    some = taken(state, torch.tensor([2, 0]))
    assert some["a"][0].tolist() == [2, 0]
    assert some["a"][1][0].tolist() == [[0, 0, 1], [1, 0, 0]]
    assert (some["a"][1][1], some["b"]) == (None, 7)
