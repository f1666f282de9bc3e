"""Finds the places of a refactoring: files by paths and globs, and matches of patterns and queries in their text."""
