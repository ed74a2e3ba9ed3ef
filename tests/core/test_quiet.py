import threading
import warnings

import numpy as np
import pytest
import torch

from likely.core.quiet import quiet


@pytest.fixture
def shown():
    """The messages of all warnings that are shown."""
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        yield lambda: [str(warning.message) for warning in recorded]


def say(message, category=UserWarning):
    warnings.warn(message, category, stacklevel=2)


def test_only_what_was_named_is_ignored(shown):
    with quiet(UserWarning, "Known (beta)"):
        say("known (beta): and more")
        say("something else")
        say("Known (beta)", RuntimeWarning)
    say("known (beta): and more")
    assert shown() == ["something else", "Known (beta)", "known (beta): and more"]


def test_warnings_from_compiled_code_are_ignored_too(shown):
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    with quiet(UserWarning, "The given NumPy array is not writ"):
        torch.from_numpy(fixed)
    with quiet(Warning):
        compile(r"'\d'", "text", "eval")
    assert shown() == []


def test_the_filters_are_as_they_were_whoever_leaves_first():
    before, inside, left = list(warnings.filters), threading.Barrier(2), threading.Event()

    def first():
        with quiet(UserWarning):
            inside.wait(60)
        left.set()

    def second():
        with quiet(RuntimeWarning):
            inside.wait(60)
            left.wait(60)

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert left.is_set()
    assert warnings.filters == before


def test_other_threads_go_on_warning(shown):
    with quiet(UserWarning):
        say("from inside")
        other = threading.Thread(target=say, args=("from outside",))
        other.start()
        other.join()
    assert shown() == ["from outside"]


def test_a_copy_of_the_filters_ignores_nothing_afterwards(shown):
    with warnings.catch_warnings():
        inside = quiet(UserWarning)
        with inside:
            copied = list(warnings.filters)
        warnings.filters[:] = copied  # as one who took a copy meanwhile would leave them
        say("after")
    assert shown() == ["after"]


def test_an_error_passes_and_the_filter_goes():
    before = list(warnings.filters)
    with pytest.raises(ValueError, match="mine"), quiet(UserWarning):
        raise ValueError("mine")
    assert warnings.filters == before
