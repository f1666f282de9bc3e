"""Gaps in whole packages: what the workspace's drafts and snippets bring."""
