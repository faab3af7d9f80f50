"""Implementations of the ports. These modules are independent of each other, except that a store uses an embedder."""
