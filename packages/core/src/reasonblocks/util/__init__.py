"""Small helpers that know nothing of steering: JSON, text, files, secrets, and install commands."""
