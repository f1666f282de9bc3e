"""Languages: one file each with what is known of a language besides its grammar.

A file holds what the lexical scan, the minimal completions, the checks and the snippets need. ``registry`` lists all
languages; ``language`` defines their parts. The package may import ``core``.
"""
