"""One interface to all kinds of models: the cache that each keeps of a context, and the reader of its fills.

It may import every package below the engine and its sessions.
"""
