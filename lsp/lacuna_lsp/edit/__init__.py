"""Edits on command: fill, regenerate, refactor and propagate, proposed to the client as workspace edits.

It may import ``server``, ``suggest``, ``engine``, ``client`` and ``documents`` of this package.
"""
