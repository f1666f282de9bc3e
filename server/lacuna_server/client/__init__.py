"""The websocket client, and how it finds or starts the service."""
