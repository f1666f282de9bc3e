"""The language server's session with the service that runs the model.

It may import ``client`` and ``documents`` of this package.
"""
