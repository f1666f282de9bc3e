"""Requests and answers in the formats of other services: llama.cpp, OpenAI, Mercury and chat.

It may import the other modules of ``http``, ``service`` and ``wire``.
"""
