"""Support for `benchmarks/outcome.py`: does steering make a real model succeed more often?"""
