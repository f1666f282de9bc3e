"""Input and output of the command line: files, excerpts, live views, tables and messages.

It may import the request types and ``hub`` of ``lacuna_model``, and ``files``.
"""
