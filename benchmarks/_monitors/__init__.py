"""What `benchmarks/monitors.py` stands on: from recorded runs to figures of how well monitors tell failures."""
