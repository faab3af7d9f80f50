"""Threads and processes of our own: workers for blocking calls, locks that survive an interrupt, and forks."""
