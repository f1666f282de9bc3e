"""The client's side of the protocol: capabilities, settings, status, error codes and messages beyond LSP.

It may import ``document`` of this package.
"""
