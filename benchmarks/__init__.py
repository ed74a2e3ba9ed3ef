"""Comparisons with peers: each file times Likely and what a user would pick instead, in one run at equal quality."""
