"""Languages: one file for each, or for a few that are alike, with what is known of it besides its grammar.

A file holds what the lexical scan, the minimal completions, the checks and the snippets need. ``registry`` lists all
languages; ``language`` defines their parts.
"""
