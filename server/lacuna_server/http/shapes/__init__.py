"""Requests and answers in the formats of other services: llama.cpp, OpenAI, Mercury and chat."""
