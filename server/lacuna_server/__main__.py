"""Runs the command line: ``python -m lacuna_server``."""

from lacuna_server.cli import main

if __name__ == "__main__":
    main()
