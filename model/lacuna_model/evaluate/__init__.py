"""Evaluation: fills are run, scored and compared with baselines."""
