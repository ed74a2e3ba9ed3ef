from __future__ import annotations

import numpy as np
import pytest
import torch

from likely import LanguageModel
from likely.core.checkpoint import Checkpoint
from likely.core.errors import SpecError
from likely.inference import HMC, MAP, Exact
from likely.models.language.fitting import automatic
from likely.networks import GRU, Transformer
from likely.optim import AdamW, Cosine
from likely.priors import Normal

TEXT = "abcab" * 30


def test_training_learns_what_repeats():
    inference = MAP("adam(0.02)", epochs=40, batch_size=4)
    model = LanguageModel(GRU(16), context=10, inference=inference, random_state=0).fit(TEXT)
    assert model.perplexity(TEXT) < 1.2
    assert model.history_["loss"][-1] < model.history_["loss"][0]


def test_held_out_text_is_scored_by_fraction_or_as_given():
    for validation in (0.2, ("abcababcab", None)):
        inference = MAP("adam(0.02)", epochs=5, batch_size=4, validation=validation)
        model = LanguageModel(GRU(4), context=10, inference=inference, random_state=0).fit(TEXT)
        assert len(model.history_["validation"]) == 5


def test_the_setting_of_nanogpt_can_be_said():
    optimizer = AdamW(1e-3, betas=(0.9, 0.99), weight_decay=0.1, only_weights=True)
    schedule = Cosine(final=0.1, warmup=2)
    inference = MAP(optimizer, steps=7, batch_size=4, clip_norm=1.0, schedule=schedule)
    network = Transformer(8, 2, 2, bias=False, tied=True)
    model = LanguageModel(network, context=10, inference=inference, random_state=0).fit(TEXT)
    names = list(model.posterior_.parameters)
    assert not any("bias" in name or "head" in name for name in names)
    assert np.isfinite(model.log_prob(TEXT)).all()


def test_a_prior_and_chains_work_as_in_every_model():
    model = LanguageModel(
        GRU(2), context=4, prior=Normal(1.0, biases=Normal(1.0)), inference=HMC.example(), random_state=0
    )
    assert np.isfinite(model.fit("abab").log_prob(["ab", "ba"])).all()
    with pytest.raises(SpecError, match=r"Exact needs .*; LanguageModel has none: use "):
        LanguageModel(GRU(2), inference=Exact()).fit("abab")


def test_automatic_training_is_longer_for_longer_texts():
    assert automatic(2).steps == 200
    assert automatic(100_000).steps == 3_000


def test_the_same_seed_gives_the_same_bits_and_another_one_does_not():
    def parameters(seed):
        model = LanguageModel(GRU(4), context=8, inference=MAP(epochs=2, batch_size=4), random_state=seed).fit(TEXT)
        return torch.cat([value.flatten() for value in model.posterior_.parameters.values()])

    assert torch.equal(parameters(0), parameters(0))
    assert not torch.equal(parameters(0), parameters(1))


class _Killed(Exception):
    pass


def test_a_broken_fit_goes_on_to_the_same_bits(tmp_path):
    """Windows are shifted by the generator of the run, which a checkpoint keeps."""

    def fit(checkpoint, *callbacks):
        inference = MAP("adam(0.01)", epochs=4, batch_size=4, checkpoint=checkpoint, callbacks=callbacks)
        return LanguageModel(GRU(4), context=8, inference=inference, random_state=0).fit(TEXT)

    def kill(epoch):
        if epoch.epoch == 2:
            raise _Killed

    checkpoint = Checkpoint(tmp_path / "run", seconds=0)
    with pytest.raises(_Killed):
        fit(checkpoint, kill)
    assert (tmp_path / "run").exists()
    assert np.array_equal(fit(checkpoint).log_prob(TEXT), fit(None).log_prob(TEXT))
