"""Gradient training: one engine, and the inferences that are steps of it."""
