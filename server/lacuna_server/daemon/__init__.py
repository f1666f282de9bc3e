"""Running the service as a process: ports, signals, logs, leaving when idle."""
