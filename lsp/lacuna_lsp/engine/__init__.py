"""The session with the service."""
