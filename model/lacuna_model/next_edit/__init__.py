"""Next edits: after a change, which other places would follow it? Rules over tokens and scopes, without a model.

``changes`` finds what was changed, ``patterns`` says what may be changed alike, ``places`` finds where, ``renames``
which of them are another variable, and ``following`` how likely a place is wanted; it puts all together. It loads no
torch. Only ``scopes`` knows languages, by the table in ``scope_rules``: to the rest they are tokens alike.
"""
