"""The service: sessions, websocket conversations, and the checks on every request."""
