"""The version is written in one place."""

import importlib.metadata

import likely
from likely.core.version import __version__


def test_version_is_that_of_the_installed_package():
    assert likely.__version__ == __version__ == importlib.metadata.version("likely")
