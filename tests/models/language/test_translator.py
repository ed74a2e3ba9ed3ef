import itertools

import numpy as np
import pytest
import torch

from likely.data.rows import Ragged
from likely.decoding import Beam, Exhaustive, Greedy
from likely.decoding.base import taken
from likely.inference import Posterior
from likely.models.language.pairs import padded
from likely.models.language.seq2seq_module import Seq2SeqModule
from likely.models.language.translator import Translator
from likely.networks import GRU, LSTM, Transformer

V, END, LENGTH = 3, 2, 4
BODIES = [(GRU(5, bidirectional=True), LSTM(5)), (Transformer(8, 2, 1), Transformer(8, 2, 2))]
SOURCES = Ragged.of([[0, 1, 3, 4], [2, 4], [1, 1, 0, 2, 4], [0, 4]])
every_body = pytest.mark.parametrize("bodies", BODIES, ids=repr)


def made(bodies, members=1):
    torch.manual_seed(0)
    modules = [Seq2SeqModule(*bodies, "general", symbols=(5, V), longest=(6, 12)) for _ in range(members)]
    for module in modules:
        module.target.weight.data.mul_(3.0)  # so that targets differ in their probabilities
    weights = torch.arange(1.0, members + 1)
    return Translator(Posterior.of(*modules, weights=weights / weights.sum()), V)


def whole(targets):
    return Ragged.of([[END, *target, END] for target in targets])


@every_body
@pytest.mark.parametrize("members", [1, 3])
def test_short_targets_sum_below_one_and_exhaustive_finds_the_best(bodies, members):
    model = made(bodies, members)
    targets = [own for length in range(LENGTH) for own in itertools.product(range(END), repeat=length)]
    best = model.decoded(SOURCES, Exhaustive(), LENGTH)
    for row in range(len(SOURCES)):
        source = SOURCES[torch.full((len(targets),), row)]
        log_prob = model.log_prob(source, whole(targets))
        assert np.exp(log_prob).sum() < 1
        if best[row][-1] == END:
            assert best[row][:-1].tolist() == list(targets[int(log_prob.argmax())])


@every_body
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("way", [Greedy(), Beam(3)], ids=repr)
def test_sources_of_several_lengths_together_are_those_one_by_one(bodies, members, way):
    model = made(bodies, members)
    together = model.decoded(SOURCES, way, LENGTH)
    for row, tokens in enumerate(together):
        np.testing.assert_array_equal(model.decoded(SOURCES[torch.tensor([row])], way, LENGTH)[0], tokens)


@every_body
@pytest.mark.parametrize("members", [1, 3])
def test_scores_of_decoding_are_log_prob_and_beam_is_not_below_greedy(bodies, members):
    model = made(bodies, members)
    first = torch.full((len(SOURCES),), END)
    found = {}
    for way in (Greedy(), Beam(3)):
        decoded = way.decode(model.step, model.start(padded(SOURCES)), first, 12, end=END)
        found[type(way)] = decoded.log_prob
        for row, tokens in enumerate(decoded.tokens.tolist()):
            target = [token for token in tokens if token >= 0]
            if target[-1] != END:  # cut: it has no log p
                continue
            exact = model.log_prob(SOURCES[torch.tensor([row])], Ragged.of([[END, *target]]))
            assert exact[0] == pytest.approx(float(decoded.log_prob[row]), rel=1e-4, abs=1e-4)
    assert bool((found[Beam] >= found[Greedy] - 1e-6).all())


@every_body
def test_rows_in_any_order_look_at_their_own_source(bodies):
    model, order = made(bodies), torch.tensor([2, 0, 0, 3, 1])
    _, state = model.step(model.start(padded(SOURCES)), torch.full((4,), END))
    straight, _ = model.step(state, torch.zeros(4, dtype=torch.long))
    mixed, _ = model.step(taken(state, order), torch.zeros(5, dtype=torch.long))
    torch.testing.assert_close(mixed, straight[order], rtol=1e-5, atol=1e-5)
