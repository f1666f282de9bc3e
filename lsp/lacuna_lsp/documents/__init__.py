"""Documents as the client has them: texts, versions, positions and notebooks.

This package imports no other package of the language server.
"""
