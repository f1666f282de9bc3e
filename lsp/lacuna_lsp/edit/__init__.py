"""Edits on command: fill, regenerate, refactor and propagate, proposed to the client as workspace edits.

It may import ``server``, ``suggest``, ``connection``, ``client`` and ``document`` of this package.
"""
