"""Next edits: after a change, which other places would follow it? Rules over tokens, without a model.

``changes`` finds what was changed, ``patterns`` says what may be changed alike, ``places`` finds where, ``ranking`` how
likely it is wanted, and ``following`` puts them together. It loads no torch, and knows no language: a string, a comment
and code are tokens alike.
"""
