"""Loops over rows, compiled. They are imported where they are needed: numba loads slowly."""
