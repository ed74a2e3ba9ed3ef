from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

import likely
from likely import LanguageModel
from likely.core.errors import ModelFileError
from likely.inference import MAP, Ensemble
from likely.models.language import Blend, NGram
from likely.models.language.blended import blend_weights, kept_apart
from likely.models.language.texts import joined
from likely.networks import GRU

TEXTS = ["the cat sat on the mat", "the rat sat on the cat", "a cat and a rat", "the mat"] * 6


@pytest.fixture(scope="module")
def model():
    inference = Ensemble(2, by=MAP(steps=30, batch_size=4))
    return LanguageModel(Blend(NGram(4), GRU(8)), context=8, inference=inference, random_state=0).fit(TEXTS)


def test_the_next_tokens_sum_to_one_and_are_a_mixture_of_both(model):
    prompts = ["the c", "", "a rat"]
    p = model.predict_dist(prompts).probs
    torch.testing.assert_close(p.sum(1), torch.ones(3, dtype=p.dtype))
    counts = LanguageModel(NGram(4)).fit(TEXTS)
    counted = counts.predict_dist(prompts).probs
    learned = model._network_predictor().following(*joined(model.vocabulary_, prompts, False)).exp()
    inside = (p >= torch.minimum(counted, learned) - 1e-9) & (p <= torch.maximum(counted, learned) + 1e-9)
    assert bool(inside.all())


def test_log_prob_is_the_sum_over_steps(model):
    text = "the rat and the cat sat"
    symbols = [model.vocabulary_.size, *model.vocabulary_.encode(text), model.vocabulary_.size]
    predictor, total = model._predictor(), 0.0
    state = predictor.start(1)
    for now, after in pairwise(symbols):
        log_probs, state = predictor.step(state, torch.tensor([now]))
        total += float(log_probs[0, after])
    np.testing.assert_allclose(model.log_prob([text]), [total], rtol=1e-5)


def test_a_file_keeps_it(model, tmp_path):
    model.save(tmp_path / "blend.likely")
    loaded = likely.load(tmp_path / "blend.likely")
    np.testing.assert_array_equal(loaded.log_prob(TEXTS[:4]), model.log_prob(TEXTS[:4]))
    np.testing.assert_array_equal(loaded.blend_weights_, model.blend_weights_)


def test_a_file_with_weights_that_are_none_is_refused(model):
    plain, tensors = model._state()
    fresh = LanguageModel(**model.get_params(deep=False))
    with pytest.raises(ModelFileError, match="between 0 and 1"):
        fresh._restore(plain, tensors | {"blend.weights": torch.full((4,), 2.0, dtype=torch.float64)})


def test_em_finds_the_weight_that_maximises_log_p():
    rng = np.random.default_rng(0)
    counted, learned, known = rng.random(500), rng.random(500), rng.integers(0, 2, 500)
    weight = blend_weights(counted, learned, known, 2, np.ones(500))
    for k in range(2):
        grid = np.linspace(0.001, 0.999, 999)
        own = known == k
        log_p = np.log(np.outer(grid, counted[own]) + np.outer(1 - grid, learned[own])).sum(1)
        log_p += np.log(grid) + np.log(1 - grid)  # one token of each is there before
        assert abs(grid[log_p.argmax()] - weight[k]) < 0.02


def test_where_counts_are_always_right_they_get_all_the_weight():
    weight = blend_weights(np.full(1000, 0.9), np.full(1000, 0.1), np.zeros(1000, int), 1, np.ones(1000))
    assert weight[0] > 0.99


@pytest.mark.parametrize("texts", [1, 3, 40, 400])
def test_about_the_fraction_is_held_out(texts):
    offsets = np.arange(texts + 1) * 101
    assert abs(kept_apart(offsets, 0.05).mean() - 0.05) < 0.01


def test_a_text_that_goes_on_is_learned_but_for_its_end():
    model = LanguageModel(Blend(NGram(3), GRU(4)), context=8, inference=MAP(steps=5), random_state=0)
    assert np.isfinite(model.fit("the cat sat on the mat " * 5).score("the cat"))


def test_one_token_leaves_nothing_to_hold_out():
    model = LanguageModel(Blend(NGram(2), GRU(4)), context=4, inference=MAP(steps=2), random_state=0).fit("a")
    np.testing.assert_array_equal(model.blend_weights_, [0.5, 0.5])
