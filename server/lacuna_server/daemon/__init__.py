"""Runs the service as a process: ports, signals, logs, and the exit after idleness."""
