"""Evaluates next edits on real commits: after a commit's first change, which of its other changes are offered?

``judging`` judges texts alone; ``server`` gets them from a real language server.
"""
