"""The service and the command line of Lacuna.

It may import ``lacuna_model`` and ``lacuna_kernels``, and nothing of ``lacuna_lsp``.
"""
