"""Evaluates the benefit of a workspace's drafts and snippets, on gaps in files of whole packages."""
