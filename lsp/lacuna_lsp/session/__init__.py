"""The state and the connection of one client.

It may import ``suggest``, ``engine``, ``client`` and ``documents`` of this package.
"""
