"""Models of a kernel: Gaussian processes, kernel ridge regression, support vectors."""
