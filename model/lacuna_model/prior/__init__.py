"""The workspace prior: finds in the user's own project which tokens followed the same text elsewhere.

It may import ``core``, ``hub``, ``files`` and ``tokens``, and no torch.
"""
