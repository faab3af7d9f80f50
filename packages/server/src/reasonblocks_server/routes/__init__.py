"""The routes of the API: each module has a `router`."""
