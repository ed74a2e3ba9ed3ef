"""A masked language model: each token from all others, written out by hand; what it learns, refuses and keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.models.language.conftest import QUICK, TEXTS, log_probs

import likely
from likely import LanguageModel, MaskedLanguageModel
from likely.core.checkpoint import Checkpoint
from likely.core.errors import DataError, SpecError
from likely.data.text import BPE, Characters, Words
from likely.inference import HMC, MAP
from likely.models.language.masked_model import automatic
from likely.networks import GRU, LSTM, Transformer


# --- what it answers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("network", [Transformer(8, 2, 1), GRU(4), Transformer(8, 2, 1, tied=True)])
def test_log_prob_is_the_sum_over_tokens_hidden_in_their_turn(network):
    model = MaskedLanguageModel(network, context=8, inference=QUICK, random_state=0).fit(TEXTS)
    expected = []
    for text in TEXTS:
        tokens = model.vocabulary_.encode(text)
        expected.append(sum(float(log_probs(model, tokens, t)[tokens[t]]) for t in range(len(tokens))))
    np.testing.assert_allclose(model.log_prob(TEXTS), expected, rtol=1e-5)
    assert model.log_prob_kind_ == "estimate"
    assert model.score(TEXTS) == pytest.approx(np.mean(expected), rel=1e-5)
    many = sum(len(model.vocabulary_.encode(text)) for text in TEXTS)
    assert model.perplexity(TEXTS) == pytest.approx(math.exp(-sum(expected) / many), rel=1e-5)


def test_masks_are_filled_by_what_is_most_probable_there(masked):
    text = "to [mask] or not to [mask]"
    distribution = masked.predict_dist(text)
    assert distribution.batch_shape == (2,)
    known = distribution.probs[:, :-1]  # the last token is that of unknown words, which is no filling
    words = [masked.vocabulary_.words[number] for number in known.argmax(1)]
    assert masked.fill(text) == f"to {words[0]} or not to {words[1]}"
    assert masked.fill([text, "so [mask] it"])[0] == masked.fill(text)
    both = masked.predict_dist(["so [mask] it", text])
    np.testing.assert_allclose(both.probs[1:], distribution.probs, rtol=1e-5)


@pytest.mark.parametrize("tokens", [Characters(), BPE(270)])
def test_other_tokens_are_filled_in_place(tokens):
    model = MaskedLanguageModel(GRU(8), tokens, context=12, inference=QUICK, random_state=0).fit(TEXTS)
    filled = model.fill("to [mask]e" if isinstance(tokens, Characters) else "to [mask] or")
    assert filled.startswith("to")
    assert "[mask]" not in filled
    assert np.isfinite(model.log_prob(TEXTS)).all()


# --- what it learns -------------------------------------------------------------------------------------------------
def test_training_learns_from_both_sides():
    """a x b and c x d: what stands between is told by neither side alone when x is drawn, but by what goes with it."""
    rng = np.random.default_rng(0)
    pairs = [(left, right) for left in "ab" for right in "cd"]
    texts = [f"{left} {left}{right} {right}" for left, right in (pairs[i] for i in rng.integers(4, size=60))]
    inference = MAP("adam(0.02)", epochs=40, batch_size=20)
    model = MaskedLanguageModel(Transformer(16, 2, 1), context=4, mask=0.3, inference=inference, random_state=0)
    model.fit(texts)
    assert model.fill([f"{left} [mask] {right}" for left, right in pairs]) == [f"{a} {a}{b} {b}" for a, b in pairs]
    assert model.history_["loss"][-1] < model.history_["loss"][0]


def test_next_sentences_are_told_from_others():
    """A second sentence is never a first one. A true one is also drawn as a wrong one, so it is likely, not sure."""
    documents = [[f"{word} one", f"{word} two"] for word in ("red", "blue", "green")] * 4
    inference = MAP("adam(0.05)", epochs=100, batch_size=None)
    model = MaskedLanguageModel(GRU(16), context=8, next_sentence=True, inference=inference, random_state=0).fit(
        documents, sample_weight=np.ones(12)
    )
    true = model.follows(["red one", "blue one"], ["red two", "blue two"])
    other = model.follows(["red one", "blue one"], ["blue one", "red one"])
    assert true.min() > other.max() + 0.2
    each = model.log_prob(["red one", "red two", "blue one"])
    np.testing.assert_allclose(model.log_prob([["red one", "red two"], ["blue one"]]), [each[:2].sum(), each[2]])
    vectors = model.transform(["red one", "red two"])
    np.testing.assert_allclose(model.transform([["red one", "red two"]])[0], vectors.mean(0), rtol=1e-5)


def test_weights_of_texts_count():
    inference = MAP("adam(0.05)", epochs=30, batch_size=None)
    texts, weight = ["a b", "a c"], [1.0, 0.0]
    model = MaskedLanguageModel(GRU(4), mask=0.5, inference=inference, random_state=0).fit(texts, sample_weight=weight)
    assert model.fill("a [mask]") == "a b"


def test_validation_is_hidden_the_same_in_every_epoch():
    still = MAP("sgd(1e-30)", epochs=3, batch_size=2, validation=(TEXTS, None))
    model = MaskedLanguageModel(GRU(3), context=8, inference=still, random_state=0).fit(TEXTS)
    assert len(set(model.history_["validation"])) == 1
    assert len(set(model.history_["loss"])) == 3


class _Killed(Exception):
    pass


def test_a_broken_fit_goes_on_to_the_same_bits(tmp_path):
    def fit(checkpoint, *callbacks):
        inference = MAP("adam(0.01)", epochs=4, batch_size=2, checkpoint=checkpoint, callbacks=callbacks)
        return MaskedLanguageModel(GRU(4), context=8, inference=inference, random_state=0).fit(TEXTS)

    def kill(epoch):
        if epoch.epoch == 2:
            raise _Killed

    checkpoint = Checkpoint(tmp_path / "run", seconds=0)
    with pytest.raises(_Killed):
        fit(checkpoint, kill)
    assert np.array_equal(fit(checkpoint).log_prob(TEXTS), fit(None).log_prob(TEXTS))


def test_automatic_training_is_longer_for_more_rows():
    assert automatic(2).steps == 200
    assert automatic(1_000_000).steps == 5_000


# --- files ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("next_sentence", [False, True])
def test_a_file_gives_it_back_bit_for_bit(next_sentence, tmp_path):
    texts = [TEXTS[:3], TEXTS[3:]] if next_sentence else TEXTS
    model = MaskedLanguageModel(GRU(4), context=8, next_sentence=next_sentence, inference=QUICK, random_state=0)
    model.fit(texts).save(tmp_path / "m.likely")
    again = likely.load(tmp_path / "m.likely")
    np.testing.assert_array_equal(again.log_prob(TEXTS), model.log_prob(TEXTS))
    np.testing.assert_array_equal(again.transform(TEXTS), model.transform(TEXTS))
    if next_sentence:
        np.testing.assert_array_equal(again.follows(TEXTS, TEXTS), model.follows(TEXTS, TEXTS))


# --- refusals -------------------------------------------------------------------------------------------------------
def test_bad_input_is_named(masked):
    with pytest.raises(DataError, match=r"text has no \[mask\]: write \[mask\] in place of a token"):
        masked.fill("to be or not")
    with pytest.raises(DataError, match=r"texts\[1\] is empty"):
        masked.log_prob(["to be", ""])
    with pytest.raises(DataError, match=r"texts\[0\] has no tokens: Words\(\) finds no tokens in it"):
        masked.transform("  ")
    with pytest.raises(DataError, match="texts has no tokens"):
        masked.perplexity(" ")
    with pytest.raises(SpecError, match="follows needs a model that was fitted with next_sentence=True"):
        masked.follows("to be", "or not")
    with pytest.raises(AttributeError, match=r"MaskedLanguageModel has no sample: .* LanguageModel draws"):
        _ = masked.sample
    assert np.isfinite(masked.log_prob("to sleep perchance")).all()  # unknown words have a token
    strict = MaskedLanguageModel(GRU(2), Characters(), inference=QUICK).fit(TEXTS)
    with pytest.raises(DataError, match=r"text has the character 'z' at position 0, which no training text has"):
        strict.fill("z[mask]")


@pytest.mark.parametrize("mask", [0.0, 1.0, 1, -0.1, 1.5, math.nan, "0.15", None])
def test_a_fraction_is_above_0_and_below_1(mask):
    with pytest.raises(SpecError, match=r"mask=.*: must be a fraction of the tokens, above 0 and below 1"):
        MaskedLanguageModel(mask=mask).fit(TEXTS)


def test_an_inference_that_needs_exact_log_probabilities_is_refused():
    with pytest.raises(
        SpecError, match=r"HMC needs the exact log-probability of each row; Masked.* gives an estimate: use"
    ):
        MaskedLanguageModel(LSTM(2), inference=HMC()).fit(TEXTS)


def test_sentences_go_in_pairs_that_fit_the_context():
    pairs = MaskedLanguageModel(GRU(2), next_sentence=True, inference=QUICK)
    with pytest.raises(DataError, match="must be a list of documents, each a list of sentences"):
        pairs.fit(TEXTS)
    with pytest.raises(SpecError, match="context=2: two sentences"):
        MaskedLanguageModel(GRU(2), context=2, next_sentence=True).fit([["a", "b"]])
    with pytest.raises(DataError, match="first has 1 sentences, second 2; they go in pairs"):
        pairs.fit([["to be", "or not"]]).follows("to be", ["or not", "to be"])


def test_a_language_model_is_no_start_with_other_words():
    base = LanguageModel(GRU(4), tokens=Words(), inference=QUICK, random_state=0).fit(TEXTS)
    with pytest.raises(SpecError, match="cuts text into words"):
        MaskedLanguageModel(GRU(4), Characters(), inference=likely.inference.FineTune(base, QUICK)).fit(TEXTS)
