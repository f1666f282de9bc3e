"""The client of the websocket, and how it finds or starts the service.

It may import ``wire``.
"""
