"""Requests and answers as other services have them: llama.cpp, OpenAI, Mercury, chat.

It may import ``wire``.
"""
