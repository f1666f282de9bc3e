"""The model process, which ``main`` runs, and in the server's process the scheduler that feeds it."""
