"""Threads of our own: workers for calls that block, and locks that stay sound when a signal interrupts."""
