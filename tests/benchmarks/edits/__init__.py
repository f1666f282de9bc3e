"""Evaluates next edits on real commits: after a commit's first change, which of its other changes are offered?

It judges texts alone; ``editor.edits`` gets them from a real language server.
"""
