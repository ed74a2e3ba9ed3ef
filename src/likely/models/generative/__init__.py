"""Generative models: distributions of rows with a network inside."""
