"""Inferences around another one say of themselves what follows from the one inside."""

from __future__ import annotations

import pytest

from likely.core.errors import SpecError
from likely.inference import MAP, AdversarialTraining, Distill, Ensemble, FineTune, MCDropout

AROUND = [Ensemble, MCDropout, Distill, AdversarialTraining, FineTune]


@pytest.mark.parametrize("kind", AROUND)
def test_what_is_inside_decides(kind):
    inference = kind(by="map(epochs=7)")
    assert inference.by == MAP(epochs=7)
    assert inference.dtype == MAP().dtype
    assert inference.needs >= MAP().needs
    assert inference.descends is (kind is not FineTune)


@pytest.mark.parametrize("kind", AROUND)
def test_what_is_no_inference_is_refused(kind):
    with pytest.raises(SpecError, match="by"):
        kind(by=3)
