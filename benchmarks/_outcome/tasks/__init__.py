"""Seeded environments with real tools and an objective end, by family."""
