"""Support for `benchmarks/monitors.py`: turns recorded runs into figures of how well monitors detect failures."""
