"""What a trained model says of texts: members averaged, windows around a token, and vectors of tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.models.language.conftest import QUICK, TEXTS, log_probs

from likely import MaskedLanguageModel
from likely.core.errors import LikelyWarning
from likely.inference import Ensemble
from likely.models.language import masked_reading
from likely.models.language.masked_reading import Reader, window_around
from likely.networks import GRU


def test_members_are_averaged_in_probability():
    inference = Ensemble(2, by=QUICK)
    model = MaskedLanguageModel(GRU(3), context=8, inference=inference, random_state=0).fit(TEXTS)
    tokens = np.append(model.vocabulary_.encode("to be"), model.vocabulary_.size)
    mixed = torch.stack([log_probs(model, tokens, 2, member).exp() for member in range(2)]).mean(0)
    np.testing.assert_allclose(model.predict_dist("to be [mask]").probs[0], mixed, rtol=1e-5)
    assert model.transform(TEXTS).shape == (5, 2 * 6)


def test_what_is_longer_than_the_context_is_read_around_the_token(masked):
    tokens = np.resize(masked.vocabulary_.encode("to be or not that is the question it"), 20)
    text = masked.vocabulary_.decode(tokens)
    starts = window_around(np.arange(20), np.full(20, 20), 8)
    expected = sum(
        float(log_probs(masked, tokens[start : start + 8], t - start)[tokens[t]]) for t, start in enumerate(starts)
    )
    assert masked.log_prob(text)[0] == pytest.approx(expected, rel=1e-5)
    with pytest.warns(LikelyWarning, match=r"text has 21 tokens, and context=8: a mask is filled from the 8 tokens"):
        masked.fill(text + " [mask]")


def test_a_vector_is_the_mean_of_what_the_network_makes_of_the_tokens(masked):
    tokens = torch.from_numpy(masked.vocabulary_.encode(TEXTS[0]))
    module = masked.posterior_.module
    expected = module.network.hidden(tokens.unsqueeze(0))[0].mean(0)
    np.testing.assert_allclose(masked.transform(TEXTS)[0], expected, rtol=1e-4, atol=1e-6)
    long = " ".join(TEXTS)
    coded = torch.from_numpy(masked.vocabulary_.encode(long)).split(8)
    total = sum(module.network.hidden(part.unsqueeze(0))[0].sum(0) for part in coded)
    np.testing.assert_allclose(masked.transform(long)[0], total / sum(map(len, coded)), rtol=1e-4, atol=1e-6)


def test_a_window_has_its_token_as_near_to_the_middle_as_it_can():
    for length in range(1, 12):
        for context in range(1, 8):
            place = np.arange(length)
            start = window_around(place, np.full(length, length), context)
            width = min(length, context)
            assert ((start >= 0) & (start + width <= length)).all()
            every = np.arange(length - width + 1)
            off = np.abs(place[:, None] - every - context // 2)
            np.testing.assert_array_equal(off[place, start], off.min(1))


def test_blocks_of_texts_are_read_as_all_at_once(masked, monkeypatch):
    pieces = [masked.vocabulary_.encode(text) for text in TEXTS]
    values, offsets = np.concatenate(pieces), np.cumsum([0, *map(len, pieces)])
    owner = np.repeat(np.arange(len(TEXTS)), np.diff(offsets))
    place = np.arange(len(values)) - offsets[owner]
    reader = Reader(masked.posterior_, 8, masked.vocabulary_.size)
    ((_, whole),) = reader.at(values, offsets, owner, place)
    vectors = reader.vectors(values, offsets, np.arange(len(TEXTS)))
    monkeypatch.setattr(masked_reading, "BLOCK", 20)
    parts = [part for _, part in reader.at(values, offsets, owner, place)]
    assert len(parts) > 5
    torch.testing.assert_close(torch.cat(parts), whole, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(reader.vectors(values, offsets, np.arange(len(TEXTS))), vectors, rtol=1e-5, atol=1e-6)
