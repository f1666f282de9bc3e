"""What every part speaks of: request, errors, the constraint's protocol, regions, layout and window.

It imports nothing else of this package, and no torch.
"""
