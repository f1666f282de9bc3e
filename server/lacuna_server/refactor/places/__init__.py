"""Which places of which files a refactoring is about: patterns, queries, globs, parsed sources."""
