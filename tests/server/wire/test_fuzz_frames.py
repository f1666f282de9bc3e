"""The decoders of frames under AddressSanitizer."""

from pathlib import Path

from tests.sanitizer import fuzzed


def test_a_frame_is_a_message_or_is_refused(tmp_path: Path) -> None:
    assert fuzzed(tmp_path, "tests.server.wire.fuzz_frames") == {"a message", "refused"}
