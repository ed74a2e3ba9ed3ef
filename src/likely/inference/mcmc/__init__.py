"""Markov chains over the parameters of any problem."""
