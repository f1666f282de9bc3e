"""Fits numbers to held-out code: the calibration of a suggestion's confidence.

It may import every package of ``evaluate``.
"""
