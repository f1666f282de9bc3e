"""The command ``lacuna``: its entry point, and one module for each command.

It may import every other package.
"""
