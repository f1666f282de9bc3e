"""Decides which files of a workspace may be read, and reads them safely: ignore files, secrets, links, limits."""
