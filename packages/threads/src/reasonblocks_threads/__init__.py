"""Threads: matters that a person decides."""
