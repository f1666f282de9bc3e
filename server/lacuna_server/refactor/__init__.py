"""Bulk refactors: select places, rewrite them by a template with holes, fill the holes in batches, apply the edits."""
