"""Variational inference: a family of distributions fitted to the posterior."""
