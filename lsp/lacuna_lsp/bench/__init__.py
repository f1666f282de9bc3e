"""``lacuna bench lsp``: from a keystroke to the answer, through the real language server and the real engine."""
