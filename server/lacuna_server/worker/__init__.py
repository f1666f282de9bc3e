"""The model process and its queue: which request is stepped next, what becomes of each.

``main`` runs in the process, all else on the service's side. It may import ``wire``.
"""
