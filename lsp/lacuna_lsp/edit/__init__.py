"""Edits on command: fill, regenerate, refactor and propagate, proposed to the client as workspace edits."""
