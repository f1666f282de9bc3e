"""What the client can do and what it is told: capabilities, messages beyond LSP, state, errors."""
