from __future__ import annotations

import itertools

import numpy as np
import pytest

import likely
from likely import Seq2Seq
from likely.core.errors import DataError, LikelyWarning, ModelFileError, SpecError
from likely.data.text import BPE, Characters, Words
from likely.decoding import Beam, Greedy, Sample
from likely.inference import HMC, MAP, Ensemble, Exact, Variational
from likely.networks import GRU, LSTM, MLP, RNN, Transformer
from likely.optim import Adam, Cosine
from likely.priors import Normal

PAIR_OF_WORDS = (Words(), Words())
QUICK = MAP(epochs=2, batch_size=4)
GERMAN = ["ein Mann schläft", "eine Frau liest", "ein Hund rennt", "eine Katze schläft", "ein Mann rennt"]
ENGLISH = ["a man sleeps", "a woman reads", "a dog runs", "a cat sleeps", "a man runs"]
BODIES = [
    (GRU(6, bidirectional=True), GRU(6)),
    (Transformer(8, 2, 1), Transformer(8, 2, 1, tied=True)),
    (RNN(4), LSTM(4)),
]


def made(bodies=BODIES[0], tokens=PAIR_OF_WORDS, inference=QUICK, **more):
    return Seq2Seq(*bodies, tokens=tokens, inference=inference, random_state=0, **more)


@pytest.fixture(scope="module")
def translator():
    return made().fit(GERMAN, ENGLISH)


# --- learning -----------------------------------------------------------------------------------------------------
STRINGS = ["".join(own) for length in (1, 2, 3) for own in itertools.product("abc", repeat=length)]


@pytest.mark.parametrize("task", ["copy", "reverse"])
@pytest.mark.parametrize(
    "bodies",
    [(GRU(16, bidirectional=True), GRU(16)), (Transformer(16, 2, 1, hidden=32), Transformer(16, 2, 1, hidden=32))],
    ids=["recurrent", "transformer"],
)
def test_copying_and_reversing_are_learned_to_the_last_string(task, bodies):
    step = -1 if task == "reverse" else 1
    inference = MAP(Adam(0.02), steps=90, batch_size=39, schedule=Cosine(warmup=0.1), clip_norm=1.0)
    model = made(bodies, Characters(), inference).fit(STRINGS, [own[::step] for own in STRINGS])
    assert model.predict(STRINGS, Greedy()) == [own[::step] for own in STRINGS]
    assert model.history_["loss"][-1] < 0.1


def test_one_symbol_becomes_the_letters_of_its_name():
    """One to many: the source is a single step."""
    digits = list("0123456789")
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    inference = MAP(Adam(0.02), steps=100, batch_size=10, schedule=Cosine(warmup=0.1), clip_norm=1.0)
    model = made((GRU(16), GRU(16)), Characters(), inference).fit(digits, names)
    assert model.predict(digits, Greedy()) == names


PAIR = (GRU(2), GRU(2)), (Transformer(2, 1, 1), Transformer(2, 1, 1))


@pytest.mark.filterwarnings("ignore")  # of chains that are far too short, and targets that do not end
@pytest.mark.parametrize(
    ("bodies", "inference"),
    [
        (PAIR[0], Ensemble(2, by=QUICK)),
        (PAIR[1], Ensemble(2, by=QUICK)),
        (PAIR[0], Variational.example()),
        ((RNN(1), RNN(1)), HMC(chains=2, draws=2, warmup=2, max_steps=2)),
    ],
    ids=repr,
)
def test_inferences_that_need_rows_fit_it(bodies, inference):
    model = made(bodies, inference=inference, prior=Normal(1.0, biases=Normal(1.0))).fit(GERMAN, ENGLISH)
    assert np.isfinite(model.log_prob(GERMAN, ENGLISH)).all()
    assert len(model.predict(GERMAN[:2], Sample())) == 2
    weights = model.attention_weights(GERMAN[0], ENGLISH[0])
    np.testing.assert_allclose(weights.sum(1), 1.0, rtol=1e-5)


def test_an_inference_that_needs_more_is_refused_by_name():
    with pytest.raises(SpecError, match=r"Exact needs .*; Seq2Seq has none: use "):
        made(inference=Exact()).fit(GERMAN, ENGLISH)


# --- answers ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("bodies", BODIES, ids=repr)
def test_answers_of_many_are_those_one_by_one(bodies):
    model = made(bodies).fit(GERMAN, ENGLISH)
    together = model.log_prob(GERMAN, ENGLISH)
    alone = [model.log_prob([source], [target])[0] for source, target in zip(GERMAN, ENGLISH, strict=True)]
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    assert model.score(GERMAN, ENGLISH, sample_weight=[1, 0, 0, 0, 0]) == pytest.approx(alone[0], rel=1e-5)
    tokens = sum(len(own.split()) + 1 for own in ENGLISH)
    assert model.perplexity(GERMAN, ENGLISH) == pytest.approx(np.exp(-sum(alone) / tokens), rel=1e-5)


def test_draws_come_as_often_as_they_are_probable(seed):
    """Each of the targets of up to one token, within 4.5 standard errors: false alarms 4 · 7e-6 = 3e-5."""
    model = Seq2Seq(GRU(2), GRU(2), tokens=Characters(), inference=MAP(epochs=1), random_state=seed)
    model.fit(["ab", "b"], ["ab", "b"])
    n, texts = 2_000, ["", "a", "b", "ab"]
    draws = model.sample(["ab"], n, length=6, random_state=seed)
    assert draws.shape == (n, 1)
    for text, p in zip(texts, np.exp(model.log_prob(["ab"] * 4, texts)), strict=True):
        assert abs((draws == text).mean() - p) < 4.5 * np.sqrt(p * (1 - p) / n)


def test_one_spec_is_one_vocabulary_and_a_pair_is_two(translator):
    assert [len(own.words) for own in translator.vocabularies_] == [9, 8]
    shared = made(tokens=BPE(300)).fit(GERMAN, ENGLISH)
    assert len(shared.vocabularies_) == 1
    assert shared.posterior_.module.source is None


def test_attention_has_a_row_for_each_token_and_the_end(translator):
    weights = translator.attention_weights("ein Mann", "a dog runs")
    assert weights.shape == (4, 3)
    np.testing.assert_allclose(weights.sum(1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("bodies", BODIES, ids=repr)
def test_loaded_it_answers_with_the_same_bits(bodies, tmp_path):
    model = made(bodies, inference=Ensemble(2, by=QUICK)).fit(GERMAN, ENGLISH)
    model.save(tmp_path / "model")
    loaded = likely.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.log_prob(GERMAN, ENGLISH), model.log_prob(GERMAN, ENGLISH))
    np.testing.assert_array_equal(loaded.sample(GERMAN, 2), model.sample(GERMAN, 2))


def test_a_file_that_lost_a_vocabulary_is_refused(translator):
    learned, tensors = translator._state()
    with pytest.raises(ModelFileError, match="it needs a vocabulary for each of its tokens"):
        made()._restore(learned | {"vocabularies": learned["vocabularies"][:1]}, tensors)
    with pytest.raises(ModelFileError, match=r"longest=\[0, 4\]; it must be two integers above 0"):
        made()._restore(learned | {"longest": [0, 4]}, tensors)


# --- bad input ----------------------------------------------------------------------------------------------------
def test_an_empty_target_is_the_end_alone(translator):
    weights = translator.attention_weights("ein Mann", "")
    assert weights.shape == (1, 3)
    assert translator.log_prob(["ein Mann"], [""])[0] < 0


def test_unknown_characters_are_named_and_unknown_words_are_not():
    model = made(tokens=Characters()).fit(["ab", "b"], ["ba", "b"])
    with pytest.raises(DataError, match=r"sources\[1\] has the character 'x' at position 1, which no training text"):
        model.predict(["ab", "ax"])
    assert np.isfinite(made().fit(GERMAN, ENGLISH).log_prob(["ein Pferd schläft"], ["a horse sleeps"]))


@pytest.mark.filterwarnings("ignore:.*had no end")
def test_swapped_languages_are_told(translator):
    with pytest.warns(
        LikelyWarning, match=r"100% of the tokens of sources are unknown.*are sources and targets swapped\?"
    ):
        translator.predict(["a man runs"], "greedy", length=50)
    with pytest.warns(LikelyWarning, match=r"67% of the tokens of sources are unknown to the model\.$"):
        translator.predict(["ein rotes Pferd"], "greedy", length=50)


def test_targets_that_do_not_end_are_cut_with_a_word():
    inference = MAP(Adam(0.05), epochs=30)
    model = made(tokens=Characters(), inference=inference).fit(["a", "b"], ["xxxxx", "yyyyy"])
    with pytest.warns(LikelyWarning, match=r"2 of 2 targets had no end after 2 tokens and are cut there"):
        assert model.predict(["a", "b"], "greedy", length=2) == ["xx", "yy"]
    for length in (0, 1.5, "long"):
        with pytest.raises(DataError, match="how many tokens a target may have must be an integer from 1 to"):
            model.predict(["a"], length=length)


def test_learned_positions_have_an_end():
    model = made(BODIES[1]).fit(GERMAN, ENGLISH)
    with pytest.raises(DataError, match=r"sources\[1\] has 4 tokens, and positions were learned for 3"):
        model.predict([GERMAN[0], "ein Mann ein Mann"])
    with pytest.raises(DataError, match=r"targets\[0\] has 5 tokens, and positions were learned for 3"):
        model.log_prob(GERMAN[:1], ["a man a man a"])
    with pytest.raises(
        DataError, match=r"length=9 is more than the 3 that positions were learned for .* fit with longest=10 or more"
    ):
        model.predict(GERMAN, length=9)
    longer = made((GRU(4), Transformer(8, 2, 1, longest=10))).fit(GERMAN, ENGLISH)
    assert longer.log_prob(GERMAN[:1], ["a man a man a"]) < 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"attention": "cosine"}, "attention='cosine': must be one of scaled, dot, general, additive"),
        ({"encoder": MLP()}, r"encoder=MLP\(\): Seq2Seq needs a Transformer"),
        ({"decoder": GRU(bidirectional=True)}, "looks ahead; a decoder needs bidirectional=False"),
        ({"tokens": (Words(), Words(), Words())}, "tokens has 3 specs; it must be one, or a pair"),
        ({"smoothing": 1.0}, "smoothing=1.0: must be a probability, 0 or more and below 1"),
    ],
)
def test_arguments_that_mean_nothing_are_named(arguments, words):
    with pytest.raises(SpecError, match=words):
        Seq2Seq(**arguments).fit(GERMAN, ENGLISH)


@pytest.mark.filterwarnings("ignore:.*had no end")
def test_decoding_goes_by_name_and_a_wrong_one_is_named(translator):
    assert translator.predict(GERMAN, "beam(width=3)") == translator.predict(GERMAN, Beam(3))
    with pytest.raises(SpecError, match="decoding"):
        translator.predict(GERMAN, "best")
    with pytest.raises(DataError, match="source must be one string; found list"):
        translator.attention_weights(GERMAN, ENGLISH[0])
