"""Examples of next edits, from consecutive releases of the corpus's packages."""
