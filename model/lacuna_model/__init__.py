"""The model side of Lacuna: weights, contexts, the loop that fills gaps, and the syntax constraint."""

import os

# Set before torch is imported, for the operations that torch runs itself; our kernels have threads of their own. OpenMP
# threads that spin at barriers slow a small model down many times as soon as another program uses a core. With these
# settings they sleep after 20,000 turns, which bridges the time between two operations. Values of the user are kept.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "20000")
