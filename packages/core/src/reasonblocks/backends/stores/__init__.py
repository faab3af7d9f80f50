"""Code shared by the pattern stores; not a store itself."""
