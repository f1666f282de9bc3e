"""The command ``lacuna``: its entry point, and one module for each command in ``commands``.

It may import every other package.
"""
