"""Errors of user input are ValueErrors, and each is also what Python's own code for such a case expects."""

from __future__ import annotations

import pytest

from likely.core import errors
from likely.core.errors import ApproximationWarning, ConvergenceWarning, LikelyError, LikelyWarning

ERRORS = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
WARNINGS = [getattr(errors, name) for name in errors.__all__ if name.endswith(("Warning", "Note"))]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_is_ours_and_a_value_error(error):
    assert issubclass(error, LikelyError)
    with pytest.raises(ValueError, match="what was found"):
        raise error("what was found")


def test_training_and_files_are_caught_as_python_would():
    assert issubclass(errors.TrainingError, ArithmeticError)
    assert issubclass(errors.ModelFileError, OSError)
    assert not issubclass(errors.SpecError, errors.DataError)


@pytest.mark.parametrize("warning", WARNINGS, ids=lambda warning: warning.__name__)
def test_every_warning_is_ours_and_shown_to_users(warning):
    assert issubclass(warning, LikelyWarning)
    assert issubclass(warning, UserWarning)
    assert not issubclass(warning, LikelyError)


def test_all_that_is_listed_is_here_and_documented():
    assert {ConvergenceWarning, ApproximationWarning} < set(WARNINGS)
    assert len(ERRORS) + len(WARNINGS) == len(errors.__all__)
    assert all(kind.__doc__ for kind in [*ERRORS, *WARNINGS])
