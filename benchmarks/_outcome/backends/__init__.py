"""Backends: the models that play the tasks."""
