from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
import torch

from likely.core.errors import ModelFileError
from likely.models.language.kneser_ney import KneserNey, discounts

V = 4


def texts(seed, count=6):
    rng = np.random.default_rng(seed)
    return [rng.choice(V, rng.integers(1, 25), p=[0.4, 0.3, 0.2, 0.1]).tolist() for _ in range(count)]


def laid_out(sequences, ends):
    pieces = [[V, *own, V] if ends else [V, *own] for own in sequences]
    return np.concatenate(pieces), np.cumsum([0, *(len(piece) for piece in pieces)])


class Oracle:
    """The equations, word for word, with dictionaries: contexts are tuples, padded by boundaries on the left."""

    def __init__(self, order, sequences, ends):
        self.order, self.outputs = order, V + ends
        top = Counter()
        for own in sequences:
            padded = [V] * (order - 1) + own + [V] * ends
            for place in range(order - 1, len(padded)):
                top[tuple(padded[place - order + 1 : place + 1])] += 1
        self.counts = {order: top}
        for size in range(order - 1, 0, -1):
            lower = Counter()
            for gram, count in self.counts[size + 1].items():
                lower[gram[1:]] += count if size > 1 and gram[1] == V else 1
            self.counts[size] = lower
        self.follow = {size: defaultdict(dict) for size in self.counts}
        for size, own in self.counts.items():
            for gram, count in own.items():
                self.follow[size][gram[:-1]][gram[-1]] = count
        self.discounts = {size: discounts(np.array([*own.values()])) for size, own in self.counts.items()}

    def prob(self, context, token):
        p = 1 / self.outputs
        for size in range(1, self.order + 1):
            h = tuple(context[len(context) - size + 1 :])
            follow = self.follow[size].get(h)
            if follow is None:
                break
            total, own = sum(follow.values()), self.discounts[size]
            spared = sum(min(own[min(c, 3)], c) for c in follow.values()) / total
            count = follow.get(token, 0)
            p = max(count - own[min(count, 3)], 0) / total + spared * p
        return p


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_it_is_the_equations(order, ends, seed):
    sequences = texts(seed)
    model = KneserNey.fit(order, *laid_out(sequences, ends), V + 1, V + ends, np.ones(len(sequences)))
    oracle = Oracle(order, sequences, ends)
    new = texts(seed + 1)
    expected = []
    for own in new:
        padded = [V] * (order - 1) + own + [V] * ends
        probs = [
            oracle.prob(padded[place - order + 1 : place], padded[place]) for place in range(order - 1, len(padded))
        ]
        expected.append(np.log(probs).sum())
    np.testing.assert_allclose(model.log_prob(*laid_out(new, ends)), expected, rtol=1e-10)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("order", [1, 2, 4, 7])
def test_probabilities_of_any_context_sum_to_one(order, ends, seed):
    sequences = texts(seed)
    model = KneserNey.fit(order, *laid_out(sequences, ends), V + 1, V + ends, np.ones(len(sequences)))
    recent = np.random.default_rng(seed).integers(V + 1, size=(200, order - 1))
    probs, known = model.distribution(recent)
    assert known.min() >= 0
    assert known.max() < model.order
    np.testing.assert_allclose(probs.sum(1), 1, rtol=1e-12)
    assert (probs > 0).all()


def test_distributions_step_by_step_multiply_to_the_log_probability(seed):
    sequences = texts(seed)
    model = KneserNey.fit(4, *laid_out(sequences, True), V + 1, V + 1, np.ones(len(sequences)))
    for own in sequences:
        state, total, last = model.start(1), 0.0, V
        for token in [*own, V]:
            log_probs, state = model.step(state, torch.tensor([last]))
            total, last = total + float(log_probs[0, token]), token
        assert total == pytest.approx(model.log_prob(*laid_out([own], True))[0], rel=1e-10)


def test_weights_are_repeats(seed):
    sequences, times = texts(seed), np.array([1, 3, 2, 1, 2, 1])
    repeated = [own for own, count in zip(sequences, times, strict=True) for _ in range(count)]
    weighted = KneserNey.fit(3, *laid_out(sequences, True), V + 1, V + 1, times.astype(float))
    plain = KneserNey.fit(3, *laid_out(repeated, True), V + 1, V + 1, np.ones(len(repeated)))
    for name, tensor in weighted.tensors().items():
        torch.testing.assert_close(tensor, plain.tensors()[name], rtol=1e-12, atol=0)


def test_continuations_and_not_counts_decide_after_a_new_context():
    """ "b" follows only "a", if often; "c" follows everything: after what was never seen, "c" is the more probable."""
    a, b, c, d = range(4)
    sequence = [a, b] * 20 + [a, c, b, c, c, c, d, c]
    model = KneserNey.fit(2, *laid_out([sequence], False), V + 1, V, np.ones(1))
    counts = Counter(sequence)
    assert counts[b] > counts[c]
    alone = KneserNey.fit(1, *laid_out([sequence], False), V + 1, V, np.ones(1))
    unigram = alone.distribution(np.zeros((1, 0), int))[0][0]
    lower = model._distribution(np.array([[V]]))[0][0]  # the boundary is followed by "a" alone, once
    assert unigram[b] > unigram[c]
    assert lower[c] > lower[b]


def test_a_tensor_file_gives_the_same_model_back(seed):
    sequences = texts(seed)
    model = KneserNey.fit(3, *laid_out(sequences, True), V + 1, V + 1, np.ones(len(sequences)))
    again = KneserNey.restore(model.tensors(), 3, V + 1, V + 1)
    np.testing.assert_array_equal(
        again.log_prob(*laid_out(sequences, True)), model.log_prob(*laid_out(sequences, True))
    )


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("sizes", lambda a: a + 1, "levels have other sizes"),
        ("sizes", lambda a: a[:2], "sizes has shape"),
        ("grams", lambda a: a.flip(0), "not sorted, or are not of its tokens"),
        ("contexts", lambda a: a + 100, "not sorted, or are not of its tokens"),
        ("mass", lambda a: a * 1.5, "do not sum to 1"),
        ("mass", lambda a: -a, "finite and not negative"),
        ("backoff", lambda a: a * 0, "finite and above 0"),
        ("grams", lambda a: a.int(), "int64"),
    ],
)
def test_a_file_that_no_fit_gives_is_refused(name, change, message):
    model = KneserNey.fit(3, *laid_out(texts(0), False), V + 1, V, np.ones(6))
    tensors = model.tensors()
    with pytest.raises(ModelFileError, match=message):
        KneserNey.restore(tensors | {name: change(tensors[name])}, 3, V + 1, V)


def test_discounts_lie_between_nothing_and_the_count(seed):
    counts = np.random.default_rng(seed).geometric(0.4, 500)
    own = discounts(counts)
    assert (own[1:] > 0).all()
    assert (own <= np.arange(4)).all()
    np.testing.assert_array_equal(discounts(np.array([7, 9])), [0, 0.5, 1, 1.5])
