"""Rewrites places by templates with holes, and carries comments of the old text over."""
