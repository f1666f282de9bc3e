"""Evaluates engines on benchmark problems: runs the tests of every fill in a sandbox. It also defines the engines."""
