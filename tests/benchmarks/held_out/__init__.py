"""Evaluates engines on gaps cut into held-out files of every language: exact match, similarity and syntax."""
