"""Laplace's approximation: a Gaussian at the mode, with the curvature there."""
