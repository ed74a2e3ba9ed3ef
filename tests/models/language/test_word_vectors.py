"""WordVectors: near words are those of the same company."""

from __future__ import annotations

import numpy as np
import pytest

import likely
from likely import WordVectors
from likely.core.errors import DataError, SpecError

OBJECTIVES = ("skip_gram", "cbow", "log_bilinear", "glove")


@pytest.fixture(scope="module")
def text():
    """Sentences about one of four subjects, whose words come in pairs of synonyms: which of the two is chance."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(1500):
        subject = rng.integers(4)
        rows.append([f"s{subject}w{rng.integers(5)}{'ab'[rng.integers(2)]}" for _ in range(8)])
    return rows


def model_of(objective, **changes):
    given = {"width": 20, "window": 3, "epochs": 15, "min_count": 1, "subsample": 0.0, "random_state": 0}
    return WordVectors(objective=objective, **given | changes)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_words_of_one_subject_are_near(objective, text):
    """With the epochs of the default: a start as long as what they learn would be most of what is near."""
    model = model_of(objective, epochs=WordVectors().epochs).fit(text)
    right = np.mean([near[:2] == word[:2] for word in model.vocabulary_ for near, _ in model.most_similar(word, 5)])
    assert right > 0.9
    assert model.history_[-1] < model.history_[0]


def test_planted_synonyms_are_nearest_neighbours():
    """Twins that only chance tells apart, each in the company of its own few words."""
    rng = np.random.default_rng(1)
    rows = [[f"left{i}", f"twin{i}{'ab'[rng.integers(2)]}", f"right{i}"] for i in rng.integers(10, size=4000)]
    model = model_of("skip_gram", window=1, epochs=10).fit(rows)
    near = [model.most_similar(f"twin{i}a", 1)[0][0] for i in range(10)]
    assert near == [f"twin{i}b" for i in range(10)]


def test_analogies_are_parallelograms():
    model = model_of("skip_gram").fit(["a b c d"] * 20)
    model.vectors_ = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]], np.float32)
    a, b, c, d = model.vocabulary_
    assert model.analogy(a, b, c)[0][0] == d
    assert {word for word, _ in model.analogy(a, b, c, 9)} == {d}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_it_is_the_same_again_and_from_a_file(objective, text, tmp_path):
    model = model_of(objective, epochs=2).fit(text[:200])
    again = model_of(objective, epochs=2).fit(text[:200])
    np.testing.assert_array_equal(model.vectors_, again.vectors_)
    model.save(tmp_path / "words.likely")
    loaded = likely.load(tmp_path / "words.likely")
    np.testing.assert_array_equal(loaded.vectors_, model.vectors_)
    assert loaded.vocabulary_ == model.vocabulary_
    assert loaded.most_similar(model.vocabulary_[0], 3) == model.most_similar(model.vocabulary_[0], 3)
    assert loaded.history_ == model.history_


def test_a_word_is_its_vector_and_a_sentence_their_mean(text):
    model = model_of("skip_gram", epochs=1).fit(text[:100])
    first, second = model.vocabulary_[:2]
    np.testing.assert_array_equal(model.transform([first, second]), model.vectors_[:2])
    mean = model.transform([f"{first} {second} unheard"])
    np.testing.assert_allclose(mean[0], model.vectors_[:2].mean(0), rtol=1e-6)
    assert model.most_similar(model.vectors_[0], 1)[0][0] == first


def test_bad_questions_and_arguments_are_named(text):
    model = model_of("skip_gram", epochs=1).fit(text[:50])
    for question, message in (
        (lambda: model.most_similar("unheard"), "X\\[0\\] = 'unheard' has no word of the vocabulary"),
        (lambda: model.most_similar(model.vocabulary_[0], 0), "n=0: how many words must be an integer above 0"),
        (lambda: model.most_similar(np.zeros(3)), r"word is a vector of shape \(3,\); those of the words are \(20,\)"),
        (lambda: model_of("glove").fit(["a", "b"]), "X has no two words of the vocabulary in one sentence"),
    ):
        with pytest.raises(DataError, match=message):
            question()
    for changes, message in (
        ({"objective": "bert"}, "objective='bert' must be one of 'skip_gram', 'cbow'"),
        ({"width": 0}, "width=0 must be an integer above 0"),
        ({"subsample": 2.0}, "subsample=2.0 must be a fraction"),
        ({"learning_rate": -1.0}, "learning_rate=-1.0 must be a number above 0"),
    ):
        with pytest.raises(SpecError, match=message):
            model_of(**{"objective": "skip_gram"} | changes).fit(text[:50])
