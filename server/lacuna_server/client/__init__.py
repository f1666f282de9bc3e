"""The websocket client, and how it finds or starts the service.

It may import ``wire``.
"""
