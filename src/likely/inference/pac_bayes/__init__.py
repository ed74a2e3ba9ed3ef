"""PAC-Bayes: a distribution over parameters that minimises a bound on its own error."""
