"""Languages: one file each with all that is known of it beside its grammar.

A file names what the lexical scan, the minimal completions, the checks and the snippets need. ``registry`` lists all of
them; ``language`` says what one consists of. The package may import ``core``.
"""
