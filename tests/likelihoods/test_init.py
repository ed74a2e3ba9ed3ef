from __future__ import annotations

import subprocess
import sys

import likely.likelihoods
from likely.core.spec import registered
from likely.likelihoods import Likelihood


def test_every_family_is_public():
    assert set(likely.likelihoods.__all__) == {"Likelihood", "Target", *registered(Likelihood)}


def test_import_is_light():
    code = "import sys, likely.likelihoods; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
