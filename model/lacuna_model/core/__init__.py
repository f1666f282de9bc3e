"""The types that all parts share: request, errors, the constraint's protocol, regions, layout and window.

It imports nothing else of this package, and no torch.
"""
