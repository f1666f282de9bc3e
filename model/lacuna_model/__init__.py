"""The diffusion language model of Lacuna: context, canvas, denoise loop and their training."""

import os

# Before torch is imported: threads that spin at barriers make a small model many times slower as soon as another
# program uses a core, so they soon sleep: 20,000 turns are some tens of microseconds, enough to bridge the gap between
# two operations (a 16-slot pass took 43 ms with it, 55 without any spinning, 62 with endless spinning). A user's own
# setting stands.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "20000")
