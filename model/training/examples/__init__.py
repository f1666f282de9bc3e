"""What drafts are trained on: texts of the corpus in the form of the engine's prompts, as models read them.

It may import the corpus's stored files and every package of the model side.
"""
