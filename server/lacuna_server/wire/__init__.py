"""Types that several processes or packages share: websocket messages, worker frames, configuration and limits.

It imports the request types of ``lacuna_model`` and nothing else of the server.
"""
