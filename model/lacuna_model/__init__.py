"""The model side of Lacuna: contexts, canvases, the denoise loop, the syntax constraint, evaluation and training."""

import os

# Set before torch is imported. OpenMP threads that spin at barriers slow a small model down many times as soon as
# another program uses a core. With these settings they sleep after 20,000 turns, some tens of microseconds, which
# bridges the time between two operations (a 16-slot pass takes 43 ms so, 55 without spinning, 62 with endless
# spinning). Values that the user set are kept.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "20000")
