"""Runs the language server: ``python -I -m lacuna_lsp``."""

import sys

from lacuna_lsp.cli import main

if __name__ == "__main__":
    sys.exit(main())
