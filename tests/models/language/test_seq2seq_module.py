import pytest
import torch
from torch.nn import functional

from likely.models.language.seq2seq_module import Seq2SeqModule
from likely.networks import GRU, LSTM, RNN, Transformer

V, S = 5, 7
SOURCES = torch.tensor([[0, 3, 1, 6], [2, 6, -1, -1], [4, 4, 6, -1]])
TARGETS = torch.tensor([[4, 0, 1, 2, 4], [4, 3, 4, -1, -1], [4, 4, -1, -1, -1]])
BODIES = [
    (GRU(6, bidirectional=True), GRU(6)),
    (RNN(4), LSTM(6, layers=2)),
    (Transformer(8, 2, 2), Transformer(8, 2, 2, tied=True)),
    (LSTM(6), Transformer(8, 2, 1, positions="relative")),
]
every_body = pytest.mark.parametrize("bodies", BODIES, ids=repr)


def made(bodies, attention="scaled", **more):
    torch.manual_seed(0)
    return Seq2SeqModule(*bodies, attention, symbols=(S, V), longest=(6, 6), **more).eval()


@torch.no_grad()
@every_body
@pytest.mark.parametrize("attention", ["dot", "scaled", "general", "additive"])
def test_log_prob_is_the_sum_of_steps_with_a_cache(bodies, attention):
    module = made(bodies, attention)
    state, read = module.read(SOURCES)
    total = torch.zeros(3)
    for t in range(TARGETS.shape[1] - 1):
        log_probs, state = module.step(TARGETS[:, t].clamp_min(0), state, read)
        torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(3))
        following = TARGETS[:, t + 1]
        gain = log_probs.gather(1, following.clamp_min(0).unsqueeze(1)).squeeze(1)
        total += torch.where(following >= 0, gain, 0.0)
    torch.testing.assert_close(module(TARGETS, SOURCES), total, rtol=1e-5, atol=1e-5)


@torch.no_grad()
@every_body
def test_padding_changes_nothing(bodies):
    module = made(bodies)
    together = module(functional.pad(TARGETS, (0, 1), value=-1), functional.pad(SOURCES, (0, 2), value=-1))
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        alone = module(target[target >= 0].unsqueeze(0), source[source >= 0].unsqueeze(0))
        torch.testing.assert_close(alone[0], together[row], rtol=1e-5, atol=1e-5)


@torch.no_grad()
@every_body
def test_later_tokens_change_nothing_before_them(bodies):
    module = made(bodies)

    def beginning(target):
        return module._eta(module.writer(module._embedded(target), *module._memory(SOURCES[:1])))[:, :3]

    torch.testing.assert_close(beginning(torch.tensor([[4, 0, 1, 2]])), beginning(torch.tensor([[4, 0, 1, 3]])))


@torch.no_grad()
@every_body
def test_attention_sums_to_one_over_what_there_is_of_the_source(bodies):
    weights = made(bodies).attention(TARGETS, SOURCES)
    assert weights.shape == (3, 4, 4)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4))
    assert bool((weights.masked_select((SOURCES < 0)[:, None]) == 0).all())


@every_body
def test_smoothing_is_that_of_torch_and_log_prob_has_none(bodies):
    module = made(bodies, smoothing=0.3)
    eta = module._eta(module.writer(module._embedded(TARGETS[:, :-1]), *module._memory(SOURCES)))
    for smoothing, answer in ((0.3, module(TARGETS, SOURCES)), (0.0, module.log_prob(TARGETS, SOURCES))):
        loss = functional.cross_entropy(
            eta.mT, TARGETS[:, 1:], ignore_index=-1, reduction="none", label_smoothing=smoothing
        )
        torch.testing.assert_close(answer, -loss.sum(1), rtol=1e-5, atol=1e-5)


def test_one_vocabulary_has_one_table_of_vectors():
    shared = Seq2SeqModule(GRU(4), GRU(4), "dot", symbols=(V, V), longest=(6, 6), shared=True)
    apart = Seq2SeqModule(GRU(4), GRU(4), "dot", symbols=(V, V), longest=(6, 6))
    sizes = [sum(value.numel() for value in module.parameters()) for module in (shared, apart)]
    assert sizes[1] - sizes[0] == V * 4
    assert Seq2SeqModule(GRU(4), GRU(3), "dot", symbols=(V, V), longest=(6, 6), shared=True).source is not None
