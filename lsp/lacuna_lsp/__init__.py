"""Lacuna's language server: it connects an editor, over LSP, with the service that fills gaps."""
