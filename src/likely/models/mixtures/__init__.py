"""Mixtures of any likelihood, k-means, and naive Bayes."""
