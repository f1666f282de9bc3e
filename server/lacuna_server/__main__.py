"""Runs the command line: ``python -m lacuna_server``."""

from lacuna_server.cli.main import main

if __name__ == "__main__":
    main()
