"""The parts of `./dev bench monitors`."""
