"""The names that installed packages offer, read from their stubs and sources; nothing of a package is executed.

It may import ``core``, ``files``, ``languages`` and the imports of ``snippets``, and no torch.
"""
