"""Runs the service as a process: ports, signals, logs, and the exit after idleness.

It may import every package of the server except ``cli``.
"""
