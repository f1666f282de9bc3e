"""Fills of refactors: how often they are right, by their confidence."""
