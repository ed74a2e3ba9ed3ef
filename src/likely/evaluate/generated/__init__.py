"""How good are generated rows? Several measures side by side, since each alone can be misled."""

from __future__ import annotations

from .closest import ClosestRecord, closest_record
from .discrepancy import Discrepancy, mmd
from .inception import frechet_distance, inception_score
from .modes import Modes, modes
from .neighbours import Fidelity, fidelity
from .two_sample import TwoSample, two_sample

__all__ = [
    "ClosestRecord",
    "Discrepancy",
    "Fidelity",
    "Modes",
    "TwoSample",
    "closest_record",
    "fidelity",
    "frechet_distance",
    "inception_score",
    "mmd",
    "modes",
    "two_sample",
]
