"""Types that several processes or packages share: websocket messages, worker frames, configuration and limits."""
