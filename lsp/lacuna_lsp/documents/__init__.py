"""Documents as the client has them: texts, versions, positions, notebooks."""
