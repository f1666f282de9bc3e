"""What is drafted for a gap: sources that propose tokens, what passes and proposals cost, and how well drafts hold.

It may import the network and the prior, and nothing of the rest of `fim`.
"""
