from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

import likely
from likely import NaiveBayes
from likely.core.errors import DataError, SpecError
from likely.data.text import Bag

TEXTS = ["so warm , so good", "a good film", "warm", "so dull", "a dull film", "cold and dull ."]
LABELS = ["+", "+", "+", "-", "-", "-"]
NEW = ["a warm film", "so cold", "", "zzz"]


def test_it_is_multinomial_naive_bayes_of_words():
    cut = CountVectorizer(binary=True, token_pattern=r"\w+|[^\w\s]")
    peer = MultinomialNB().fit(cut.fit_transform(TEXTS), LABELS)
    model = NaiveBayes(tokens=Bag(pairs=False)).fit(TEXTS, LABELS)
    expected = peer.predict_log_proba(cut.transform(NEW))
    np.testing.assert_allclose(model.predict_log_proba(NEW), expected, atol=1e-10)


def test_all_questions_take_texts(tmp_path):
    model = NaiveBayes().fit(TEXTS, LABELS, sample_weight=np.ones(6))
    assert model.predict(NEW[:2]).tolist() == ["+", "-"]
    assert model.score(TEXTS, LABELS) == 1.0
    assert model.sample(NEW, 3, random_state=0).shape == (3, 4)
    np.testing.assert_allclose(model.log_prob(NEW[:1], ["+"]), model.predict_log_proba(NEW[:1])[:, 0])
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(likely.load(tmp_path / "m").predict_proba(NEW), model.predict_proba(NEW))
    refitted = model.fit(np.arange(6.0).reshape(-1, 1), LABELS)
    assert refitted.predict([[0.0]]).tolist() == ["+"]


def test_what_texts_do_not_allow_is_said():
    model = NaiveBayes().fit(TEXTS, LABELS)
    with pytest.raises(DataError, match="X must be a list of strings, one for each row: the model was fitted on texts"):
        model.predict([[1.0]])
    with pytest.raises(DataError, match="joint_sample draws no texts: NaiveBayes knows which words a text has"):
        model.joint_sample(2)
    with pytest.raises(DataError, match="impute fills no texts"):
        model.impute(NEW)
    with pytest.raises(DataError, match="partial_fit takes numbers; the words of texts are learned from all of them"):
        NaiveBayes().partial_fit(TEXTS, LABELS, classes=["+", "-"])
    with pytest.raises(DataError, match="X has text; the model was fitted on numbers"):
        NaiveBayes().fit([[0.0], [1.0], [2.0], [4.0]], ["a", "a", "b", "b"]).predict(NEW)
    with pytest.raises(SpecError, match="smoothing must be positive for texts"):
        NaiveBayes(smoothing=0).fit(TEXTS, LABELS)
