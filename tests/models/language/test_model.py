from __future__ import annotations

import itertools
import math
import pickle
import re
from contextlib import nullcontext

import numpy as np
import pytest
import torch

import likely
from likely import LanguageModel
from likely.core.errors import DataError, LikelyWarning, ModelFileError, SpecError
from likely.core.files import read_file, write_file
from likely.data.text import BPE, Characters, Words
from likely.decoding import Beam, Greedy
from likely.inference import MAP, Ensemble
from likely.models.language import NGram
from likely.networks import GRU, LRU, LSTM, MLP, Transformer
from likely.priors import Normal

NAMES = ["anna", "hanna", "ann", "nan", "hannah", "han", "nana"]
STORY = "the cat sat on the mat, and the rat sat on the cat. " * 4
QUICK = MAP("adam(0.02)", epochs=3, batch_size=4)
NETWORKS = [NGram(3), Transformer(8, 2, 1), LSTM(6), GRU(6), LRU(6, 4, 1)]


def made(network, texts=STORY, **more):
    trained = {} if isinstance(network, NGram) else {"inference": QUICK}
    return LanguageModel(network, context=8, random_state=0, **trained, **more).fit(texts)


# --- probabilities --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_probabilities_of_continuations_sum_to_one_at_each_length(network):
    model = made(network, "abaabba")
    for length in (1, 2, 3):
        every = ["".join(own) for own in itertools.product("ab", repeat=length)]
        assert np.exp(model.log_prob(every)).sum() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_texts_that_end_have_probabilities_that_sum_to_what_is_not_longer(network):
    """Σ p(text) over lengths 1 … 3, and what goes on after 3 tokens, and the empty text, is all there is."""
    model = made(network, ["ab", "b", "ba", "abb"])
    ended = sum(
        np.exp(model.log_prob(["".join(own) for own in itertools.product("ab", repeat=k)])).sum() for k in (1, 2)
    )
    prompts = ["".join(own) for own in itertools.product("ab", repeat=2)]
    probs = model.predict_dist([""]).probs[0]
    assert probs.shape == (3,)
    on = sum(np.exp(_begins(model, own)) * (1 - float(model.predict_dist(own).probs[2])) for own in prompts)
    assert ended + on + float(probs[2]) == pytest.approx(1, rel=1e-5)


def _begins(model, text):
    """log p of a text that may go on."""
    tokens = model.vocabulary_.encode(text)
    return sum(float(model.predict_dist(text[:place]).logits[token]) for place, token in enumerate(tokens))


@pytest.mark.parametrize("texts", [STORY, [STORY, STORY[:20]]], ids=["goes on", "ends"])
@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_log_prob_is_the_sum_over_next_tokens(network, texts):
    model = made(network, texts)
    text = "the mat"
    total = _begins(model, text)
    if model.ends_:
        total += float(model.predict_dist(text).logits[-1])
    assert model.log_prob(text)[0] == pytest.approx(total, rel=1e-5)
    assert model.log_prob([text, "cat"])[0] == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("tokens", [Characters(), BPE(270), Words()], ids=repr)
def test_bits_and_perplexity_are_means_of_log_prob(tokens):
    model = LanguageModel(NGram(3), tokens=tokens).fit(STORY)
    text = "the cat sat on the rat"
    log_prob = float(model.log_prob(text)[0])
    assert model.score(text) == log_prob
    count = len(model.vocabulary_.encode(text))
    assert model.perplexity(text) == pytest.approx(math.exp(-log_prob / count))
    assert model.bits_per_character(text) == pytest.approx(-log_prob / len(text) / math.log(2))


def test_bits_are_refused_for_tokens_that_lose_something():
    model = LanguageModel(NGram(2), tokens=Words()).fit(STORY)
    with pytest.raises(DataError, match=r"texts\[1\] cannot be rebuilt from its tokens by Words\(\)"):
        model.bits_per_character(["the cat", "the  cat"])


def test_a_uniform_model_has_the_perplexity_of_its_alphabet():
    rng = np.random.default_rng(0)
    text = "".join(rng.choice(list("abcd"), 40_000))
    assert LanguageModel(NGram(1)).fit(text).perplexity(text) == pytest.approx(4, rel=1e-3)


# --- draws ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_draws_begin_with_the_prompt_and_have_the_length(network):
    model = made(network)
    drawn = model.sample(3, prompt=["the ", "", "a"], length=20)
    assert [len(text) for text in drawn] == [24, 20, 21]
    assert [drawn[0][:4], drawn[2][:1]] == ["the ", "a"]
    assert model.sample(2, length=5, decoding=Greedy()) == model.sample(2, length=5, decoding="greedy")


@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_prompts_of_several_lengths_are_continued_as_one_by_one(network):
    model = made(network)
    prompts = ["t", "the cat", "on the mat"]
    for way in (Greedy(), Beam(3)):
        with pytest.warns(LikelyWarning) if not isinstance(network, NGram) else nullcontext():
            together = model.sample(3, prompt=prompts, length=12, decoding=way)
            assert together == [model.sample(prompt=prompt, length=12, decoding=way)[0] for prompt in prompts]


def test_texts_with_an_end_are_drawn_to_it():
    model = LanguageModel(NGram(4), random_state=0).fit(NAMES)
    drawn = model.sample(200, length=50)
    assert max(map(len, drawn)) < 50
    assert set(drawn) & set(NAMES)


def test_draws_have_the_probabilities_of_the_model(seed):
    """How often the commonest texts are drawn, in standard errors: 4 texts, 20,000 draws, false alarm below 1e-6."""
    model = LanguageModel(NGram(2)).fit(["a", "b", "ab", "ba", "aa"])
    drawn = model.sample(20_000, length=12, random_state=seed)
    for text in ("a", "b", "ab", "ba"):
        p = float(np.exp(model.log_prob(text)[0]))
        assert abs(drawn.count(text) / 20_000 - p) < 5.5 * math.sqrt(p * (1 - p) / 20_000)


def test_a_model_may_never_write_beyond_what_its_tokens_are():
    model = LanguageModel(NGram(3), tokens=BPE(280), random_state=0).fit("naïve 🎲 " * 8)
    assert all(isinstance(text, str) for text in model.sample(4, length=30))


# --- bad input ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("", "texts[0] is empty: it has no characters; leave it out."),
        ([], "texts is an empty list: there is no text in it."),
        (["a", ""], "texts[1] is empty: it has no characters; leave it out."),
        ([1.0], "texts[0] is 1.0, a float; it must be a string."),
        (np.eye(2), "texts must be a string or a list of strings"),
    ],
)
def test_texts_that_will_not_do_are_refused_by_name(texts, message):
    for ask in (LanguageModel().fit, LanguageModel().fit(STORY).log_prob):
        with pytest.raises(DataError, match=re.escape(message)):
            ask(texts)


def test_unknown_characters_are_named():
    model = LanguageModel().fit("abc")
    for ask in (model.log_prob, model.perplexity, model.predict_dist):
        with pytest.raises(DataError, match="has the character 'x' at position 1, which no training text has"):
            ask("ax")
    with pytest.raises(DataError, match="prompt has the character 'x' at position 0"):
        model.sample(prompt="x")


def test_a_prompt_longer_than_the_context_says_what_happens():
    model = made(GRU(6))
    message = "prompt has 11 tokens, and context=8: only the last 5 to 8 of them count"
    with pytest.warns(LikelyWarning, match=message):
        long = model.predict_dist("the cat sat")
    with pytest.warns(LikelyWarning, match=message):
        assert model.sample(prompt="the cat sat", length=3)[0].startswith("the cat sat")
    with pytest.warns(LikelyWarning):
        same = model.predict_dist("and cat sat")
    torch.testing.assert_close(long.logits, same.logits)


def test_arguments_that_mean_nothing_are_named():
    for context in (0, 2.5, 10**6):
        with pytest.raises(SpecError, match=re.escape(f"context={context!r}: must be an integer from 1 to 100,000")):
            LanguageModel(context=context).fit("ab")
    with pytest.raises(SpecError, match="NGram is fitted by counting"):
        LanguageModel(inference=MAP()).fit("ab")
    with pytest.raises(SpecError, match="NGram is fitted by counting"):
        LanguageModel(prior=Normal(1.0)).fit("ab")
    with pytest.raises(SpecError, match="LanguageModel needs NGram, or a network"):
        LanguageModel(MLP()).fit("ab")
    with pytest.raises(DataError, match=r"prompt has 2 texts; it must have 1, or n = 3"):
        LanguageModel().fit("ab").sample(3, prompt=["a", "b"])
    assert LanguageModel("ngram(order=2)").fit("abab").counts_.order == 2


# --- files ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tokens", [Characters(), BPE(270), Words()], ids=repr)
@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_a_file_gives_the_same_answers(network, tokens, tmp_path):
    model = made(network, [STORY, "the cat"], tokens=tokens)
    model.save(tmp_path / "model")
    for again in (likely.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.log_prob(STORY), model.log_prob(STORY))
        assert again.sample(2, length=9, random_state=1) == model.sample(2, length=9, random_state=1)


def test_an_ensemble_is_kept_whole(tmp_path):
    model = LanguageModel(GRU(4), context=8, inference=Ensemble(2, by=QUICK), random_state=0).fit(STORY)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(likely.load(tmp_path / "model").log_prob(STORY), model.log_prob(STORY))


@pytest.mark.parametrize(
    "change", [{"ends": 1}, {"vocabulary": {"kind": "words", "words": ["a"]}}, {"posterior": {"kind": "members"}}]
)
def test_a_file_whose_parts_do_not_fit_is_refused(change, tmp_path):
    path = tmp_path / "model"
    LanguageModel(NGram(2)).fit(STORY).save(path)
    header, tensors = read_file(path)
    write_file(path, {**header, "learned": header["learned"] | change}, tensors)
    with pytest.raises(ModelFileError):
        likely.load(path)
