"""One client's state and connection."""
