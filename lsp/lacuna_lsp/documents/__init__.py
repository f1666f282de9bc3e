"""Documents as the client has them: texts, versions and positions.

This package imports no other package of the language server.
"""
