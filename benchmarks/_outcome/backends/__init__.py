"""Backends: a local model, any endpoint, a GPU."""
