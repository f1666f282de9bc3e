"""The client's side of the protocol: what it has open, settings, error codes and messages beyond LSP."""
