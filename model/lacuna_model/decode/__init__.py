"""The denoise loop: canvases of slots, the marginals of a pass, the schedule of commits, and the confidence of a fill.

It may import ``core`` and ``tokens``. It knows the model only through the protocol ``CanvasModel``.
"""
