"""Bulk refactors: places are selected, rewritten by a template with holes, filled in batches, shown and applied."""
