"""Runs the process that matches structural patterns: starts it when it is needed, and again after it was killed."""

import atexit
import subprocess
import sys
from threading import Lock

import msgspec

from lacuna_model.core.errors import LacunaError
from lacuna_model.languages.parsing import UnparsableError
from lacuna_server.refactor.places.matching import Answer, Question


class Matcher:
    """One process that answers one question after the other. Several threads may ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._decoder = msgspec.json.Decoder(Answer)

    def ask(self, question: Question) -> Answer:
        """Returns the answer to a question. Raises UnparsableError where ast-grep takes too long or crashes."""
        with self._lock:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(msgspec.json.encode(question) + b"\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except BrokenPipeError:
                line = b""
            if not line:
                self.close()
                raise UnparsableError("ast-grep does not come to an end with it")
        return self._decoder.decode(line)

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            self.close()
            command = [sys.executable, "-I", "-m", "lacuna_server.refactor.places.matching"]
            try:
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            except OSError as error:
                raise LacunaError(f"ast-grep cannot be started: {error}") from error
        return self._process


MATCHER = Matcher()
atexit.register(MATCHER.close)
