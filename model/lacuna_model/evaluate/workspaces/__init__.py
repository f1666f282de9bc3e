"""Evaluates the benefit of a workspace's drafts and snippets, on gaps in files of whole packages.

It may import ``held_out`` and ``tasks`` of ``evaluate``.
"""
