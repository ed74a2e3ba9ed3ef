"""Exact and convex inference: closed forms, Newton's method, conjugate models."""
