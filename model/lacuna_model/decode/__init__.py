"""The denoise loop: canvases of slots, what a pass says of them, what is committed, and how sure a fill is.

It may import ``core`` and ``tokens``. Which model reads the canvases it does not know.
"""
