"""Decoding: from the probabilities of the next token to whole sequences, for any model that goes step by step."""

from __future__ import annotations

from .base import Decoded, Decoding
from .beam import Beam
from .exhaustive import Exhaustive
from .greedy import Greedy
from .sample import Sample

__all__ = ["Beam", "Decoded", "Decoding", "Exhaustive", "Greedy", "Sample"]
