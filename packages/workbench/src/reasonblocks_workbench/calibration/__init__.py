"""Calibrations: the level of an agent's difficulty, and the curves of an embedder, fitted to recorded runs."""
