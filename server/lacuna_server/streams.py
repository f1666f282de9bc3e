"""What a process prints where nobody has to read it: a disk that is full is no reason to fail."""

import io
import sys


class _Forgiving(io.FileIO):
    """Takes what cannot be written for written."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except OSError:
            return memoryview(data).nbytes  # type: ignore[arg-type]


def forgive() -> None:
    """Let nothing that this process prints raise an error from here on."""
    for name in ("stdout", "stderr"):
        raw = _Forgiving(getattr(sys, name).fileno(), "w", closefd=False)
        stream = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)
        setattr(sys, name, stream)
