"""Training an encoder–decoder: pairs at the door, weights, held-out pairs, and the work of a network."""

from __future__ import annotations

import pytest
import torch

from likely import Seq2Seq
from likely.core.errors import DataError
from likely.data.text import Characters, Words
from likely.inference import MAP
from likely.models.language.seq2seq_fitting import (
    BATCH,
    PASSES,
    STEPS,
    automatic,
    module_of,
    read_pairs,
    trained,
    work_of,
)
from likely.networks import GRU
from likely.optim import SGD, Adam

GERMAN = ["ein Mann schläft", "eine Frau liest", "ein Hund rennt", "eine Katze schläft", "ein Mann rennt"]
ENGLISH = ["a man sleeps", "a woman reads", "a dog runs", "a cat sleeps", "a man runs"]
BODIES = (GRU(6, bidirectional=True), GRU(6))


def made(inference, bodies=BODIES):
    return Seq2Seq(*bodies, tokens=(Words(), Words()), inference=inference, random_state=0)


def test_a_weight_of_zero_is_a_pair_less(seed):
    """Training sees other batches, so only what cannot be learned without the pair is compared: a target token."""
    weight = [1.0, 1.0, 0.0]
    inference = MAP(Adam(0.05), epochs=40, batch_size=None)
    model = Seq2Seq(GRU(4), GRU(4), tokens=Characters(), inference=inference, random_state=seed)
    model.fit(["a", "b", "c"], ["x", "y", "z"], sample_weight=weight)
    kept, dropped = model.log_prob(["a", "b"], ["x", "y"]), model.log_prob(["c"], ["z"])
    assert kept.min() > dropped.max()


def test_a_weight_of_two_is_a_pair_twice():
    """Full batches, one seed, plain steps: the same gradients, but for rounding."""
    model = made(MAP(SGD(0.1), epochs=5, batch_size=None)).fit(GERMAN, ENGLISH)
    read, written = model._coded(GERMAN, 0, "sources"), model._coded(ENGLISH, 1, "targets")
    weight = torch.tensor([2.0, 1.0, 0.0, 3.0, 1.0], dtype=torch.float64)
    own = torch.repeat_interleave(torch.arange(5), weight.long())
    weighted, repeated = trained(model, read, written, weight), trained(model, read[own], written[own], None)
    assert any(bool((value != model.posterior_.parameters[name]).any()) for name, value in weighted.parameters.items())
    for name, value in weighted.parameters.items():
        torch.testing.assert_close(value, repeated.parameters[name], rtol=1e-4, atol=1e-6)


def test_pairs_are_held_out_for_validation():
    model = made(inference=MAP(epochs=2, validation=(GERMAN[:2], ENGLISH[:2]))).fit(GERMAN, ENGLISH)
    tokens = sum(len(own.split()) + 1 for own in ENGLISH[:2])
    assert model.history_["validation"][-1] == pytest.approx(-model.log_prob(GERMAN[:2], ENGLISH[:2]).sum() / tokens)


@pytest.mark.parametrize(
    ("sources", "targets", "words"),
    [
        (["a", ""], ["b", "c"], r"sources\[1\] is empty: it has no characters; leave it out"),
        (["a", "b"], ["b", ""], r"targets\[1\] is empty"),
        (["a"], ["b", "c"], "sources has 1 texts and targets has 2; every source needs its target"),
        ([], [], "sources is an empty list"),
        (["a", 3], ["b", "c"], r"sources\[1\] is 3, an int; it must be a string"),
    ],
)
def test_pairs_that_are_none_are_named(sources, targets, words):
    with pytest.raises(DataError, match=words):
        read_pairs(sources, targets)


def test_an_empty_target_is_taken_where_that_is_asked():
    assert read_pairs(["a"], [""], empty=True) == (["a"], [""])
    assert read_pairs("a", "b") == (["a"], ["b"])


def test_automatic_training_takes_more_steps_for_more_pairs_up_to_a_bound():
    assert automatic(5).batch_size == 5
    assert automatic(5).steps == 600
    assert automatic(1_000).steps == PASSES * (1_000 // BATCH)
    assert automatic(1_000_000).steps == STEPS


def test_the_work_of_a_token_is_that_of_the_largest_product():
    """Of many words by a narrow network: the map to their probabilities, V h products for each token and the end."""
    words = [f"w{number}" for number in range(300)]
    targets = [" ".join(words[first : first + 10]) for first in range(0, 300, 10)]
    model = made(MAP(epochs=1), (GRU(64), GRU(64))).fit(["a b"] * 30, targets)
    assert model.longest_ == (2 + 1, 10 + 1)  # with their ends
    symbols = module_of(model).outputs
    assert symbols == 302  # with the unknown word, and the end
    assert work_of(model) == pytest.approx(11 * symbols * 64 / (3 + 11))
