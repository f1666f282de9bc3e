"""The command ``lacuna``: one module a command in ``commands``.

It may import every other package.
"""
