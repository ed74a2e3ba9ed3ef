"""Inference where variables are hidden: EM, collapsed Gibbs sampling, variational Bayes."""
