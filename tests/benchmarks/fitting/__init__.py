"""Fits numbers that ship: the calibration of a suggestion's confidence, the weights that rank next edits."""
