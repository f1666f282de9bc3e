"""The types that all parts share: request, errors, what every constraint is, regions, layout and window.

It imports nothing else of this package, and no torch.
"""
