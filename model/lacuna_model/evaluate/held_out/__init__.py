"""Gaps cut into held-out files of eight languages: exact match and similarity, beside the peer."""
