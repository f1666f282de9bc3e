"""The service: sessions, the websocket, limits, and the ASGI application.

It may import ``wire``, ``worker`` and ``http``.
"""
