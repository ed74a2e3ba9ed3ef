"""Every density × every inference: it fits, or refuses in one sentence that names those which can.

Densities are the models of `test_meaning` that have an inference and no target, so a new one joins by its example
there; inferences come from the registry.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from tests.common.test_meaning import EXAMPLES, rows_of

from likely.core.errors import LikelyWarning, SpecError, TrainingError
from likely.core.spec import registered

REFUSAL = re.compile(r"(\w+) needs [^.]+; [^.]+ (?:gives a bound|gives an estimate|has none): use ([\w, ]+)\.")
INFERENCES = {name: cls.example() for name, cls in registered("inference").items()}
INFERENCES["FineTune"] = INFERENCES["FineTune"].replace(train="all")  # a density need have neither a head nor matrices


OTHERWISE = ("BayesianNetwork", "Forecaster")
"""Complete rows are counted, whatever the inference, which is for gaps; the past of a series predicts what follows it,
so that every inference of a regression will do. Their own tests have both."""


def densities():
    for name, (example, *_) in EXAMPLES.items():
        model = example.make()
        if name not in OTHERWISE and example.y is None and "inference" in model.get_params(deep=False):
            yield name, example


DENSITIES = dict(densities())


def fit(name, inference):
    """The fitted model, or the sentence by which it is refused; None if a flat prior leaves no posterior."""
    example = DENSITIES[name]
    model = example.make().set_params(inference=INFERENCES[inference])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LikelyWarning)  # few steps and flat priors: said, and expected
        try:
            return model.fit(example.X)
        except SpecError as error:
            return str(error)
        except TrainingError as error:  # a flat prior may leave no posterior; that is said, and where
            if "there is no posterior to draw from" not in str(error):
                raise
            return None


def check(name, inference):
    answer = fit(name, inference)
    if isinstance(answer, str):
        return answer
    if answer is not None and hasattr(answer, "log_prob"):
        log_prob = answer.log_prob(DENSITIES[name].X)
        assert log_prob.shape == (rows_of(DENSITIES[name].X),)
        assert np.isfinite(log_prob).all()
    return None


def able(name):
    """The inferences that the refusal of one that cannot fit any density names."""
    answer = fit(name, "Exact")
    match = REFUSAL.fullmatch(answer) if isinstance(answer, str) else None
    assert match, answer
    return match[2].split(", ")


QUICK = ("MAP", "EM", "VariationalBayes")


@pytest.mark.parametrize("name", DENSITIES)
def test_a_density_fits_by_what_a_refusal_names_and_refuses_the_others(name):
    """The quick ones here; `make matrix` fits all."""
    named = able(name)
    assert set(named) <= set(INFERENCES)
    for inference in INFERENCES:
        if inference in named and inference not in QUICK:
            continue
        answer = check(name, inference)
        assert (answer is None) == (inference in named), answer
        if answer is not None:
            match = REFUSAL.fullmatch(answer)
            assert match, answer
            assert match[1] == inference
            assert match[2].split(", ") == named


def test_every_inference_fits_some_density():
    """All but those that need a target, over all densities."""
    named = {inference for name in DENSITIES for inference in able(name)}
    assert set(INFERENCES) - named <= {"AdversarialTraining", "Distill", "Exact", "Laplace", "Newton", "PACBayes"}


@pytest.mark.matrix
@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("name", DENSITIES)
def test_every_density_fits_by_every_inference_that_can(name, inference):
    if inference in able(name):
        assert check(name, inference) is None
