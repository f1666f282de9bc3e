"""The user's workspace on disk: which of its files may be read, and their text."""
