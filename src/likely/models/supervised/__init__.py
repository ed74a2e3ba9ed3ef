"""Classifiers and regressors: p(y | x) = likelihood(network(x))."""
