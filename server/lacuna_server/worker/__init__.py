"""The model process and the scheduler that feeds it.

``main`` runs in the model process, all other modules in the server process. It may import ``wire``.
"""
