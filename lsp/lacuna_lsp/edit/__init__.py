"""Edits on command: fill, regenerate, refactor, propagate, previewed as workspace edits."""
