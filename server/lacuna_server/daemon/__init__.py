"""Runs the service as a process: ports, signals, logs, the end when idle.

It may import every package of the server except ``cli``.
"""
