"""The command ``typing``: what a person who types real code saves, and whether what is shown is right.

``person`` types in a real Neovim, with this project's plugin and with others. ``asking`` asks the language server
directly at the same lines, without an editor and without a clock: quality in minutes.
"""
