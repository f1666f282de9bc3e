"""What the command line reads and shows: files, excerpts, live views, tables.

It may import the request types of the model side.
"""
