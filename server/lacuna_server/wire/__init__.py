"""What is said between processes: messages, frames, configuration, limits, tokens.

It imports the request types of the model side and nothing else of the server.
"""
