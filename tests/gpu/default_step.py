"""The step that starts the service as a user does: `lacuna serve` with nothing set, and one client.

The files of the registry's models are made here, of their sizes, with random weights and the real vocabulary sizes. A
note beside each says that it is what the registry expects.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import gguf
import msgspec
import numpy as np
from numpy.typing import NDArray
from tests.gpu.harness import Place, Report
from tests.model import gguf_files, started, tiny

from lacuna_model.core.params import FillGaps, InfillRequest, Region
from lacuna_model.hub import atomic, models
from lacuna_model.network.config import ModelConfig, shape_of
from lacuna_server.client.blocking import connected
from lacuna_server.client.starting import Address

ROOT = Path(__file__).parents[2]
# The fills of one document, one after another; the first ones show what is recorded and compiled at their time.
FILLS = 8
# Bytes of a block of 32 weights in Q4_0.
BLOCK = 18
# The mean size of a weight's codes, times the scale, is this share of the inputs' root.
SPREAD = 4.6
COSTS = "lacuna_pass_seconds{"
# The shapes of Qwen2.5-Coder.
CODER = ModelConfig(
    24, 896, 4864, 14, 2, 64, 151_936, rope_theta=1e6, rms_norm_eps=1e-6, attention_bias=True, tie_embeddings=True
)
SHAPES = {
    models.SMALL_MODEL: CODER,
    models.LARGE_MODEL: msgspec.structs.replace(
        CODER, num_layers=28, hidden_size=1536, intermediate_size=8960, num_heads=12, head_dim=128
    ),
}


def default(place: Place, report: Report) -> None:
    """Make the models, start the service, and fill; report how long each takes, and the service's metrics.

    Expected: 60 s, of which the files take 30 and the start 10. Among the metrics are the costs that the start has
    measured, of passes of 1 to 32 rows and of masks: a recording or a compilation among them would be seconds.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lacuna-", dir="/tmp") as name:
        cache = Path(name)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("LACUNA_")}
        environment |= {models.CACHE_VARIABLE: name, "XDG_RUNTIME_DIR": name, "XDG_CONFIG_HOME": name}
        for info in (info for info in models.MODELS if info.name in SHAPES):
            config = SHAPES[info.name]
            write(cache / "models" / info.name / info.filename, info, started.LEAST if place.pretend else config)
        report.add("made_s", time.monotonic() - began)
        began = time.monotonic()
        with serving(environment, place.out / "serve.log") as url, connected(Address(url, "")) as engine:
            report.add("listens_s", time.monotonic() - began)
            engine.wait(lambda share: None)
            report.add("ready_s", time.monotonic() - began)
            report.add("model", engine.status().model)
            for number in range(1 if place.pretend else FILLS):
                asked = time.monotonic()
                at = len(tiny.CODE) // 2 + number
                task = FillGaps(open=True, due_ms=450 * (number % 2))
                region = Region(at, at, max_tokens=2 if place.pretend else 64)
                found = engine.fill(InfillRequest(tiny.CODE, (region,), task, path="default.py"))
                told = {"ms": round((time.monotonic() - asked) * 1e3, 1), "status": found.status}
                stats = msgspec.to_builtins(found.stats)
                kept = ("nfe", "tokens", "context_tokens", "cached_tokens", "encode_ms", "constraint_ms", "model")
                report.add(f"fill {number}", told | {key: stats[key] for key in kept})
                if not number:
                    report.add("first fill after the start, s", time.monotonic() - began, "below 10")
            with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
                text = answer.read().decode()
        (place.out / "metrics.txt").write_text(text)
        costs = [line.removeprefix("lacuna_pass_seconds") for line in text.splitlines() if line.startswith(COSTS)]
        report.add("first costs, s", costs, "each below 0.01")
        shown = [line for line in text.splitlines() if line.startswith("lacuna_") and "bucket" not in line]
        report.add("metrics", shown[:60])


@contextmanager
def serving(environment: Mapping[str, str], log: Path) -> Iterator[str]:
    """Run `lacuna serve`; yields the address. Raises RuntimeError with its last line where it does not start."""
    command = [sys.executable, "-m", "lacuna_server", "serve"]
    with log.open("w") as kept:
        process = subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            said = ""
            for line in process.stderr:
                kept.write(line)
                if "url=" in line:
                    break
                said = line.strip() or said
            else:
                raise RuntimeError(f"the service does not start: {said}")
            rest = process.stderr
            threading.Thread(target=lambda: kept.writelines(rest), daemon=True).start()
            yield line.partition("url=")[2].split()[0]
        finally:
            process.terminate()
            process.wait()


def write(file: Path, info: models.ModelInfo, config: ModelConfig) -> None:
    """A model of random weights in 4 bit in place of one of the registry, and the note that says so."""
    file.parent.mkdir(parents=True)
    words, drawn = started.vocabulary(), np.random.default_rng(0)
    writer = gguf_files.begun(file, "qwen2", config, words, fields=started.fields(words))
    for ours, theirs in gguf_files.names(config):
        shape = shape_of(ours, config)
        if len(shape) == 2:
            writer.add_tensor(theirs, _matrix(drawn, *shape), raw_dtype=gguf.GGMLQuantizationType.Q4_0)
        else:
            writer.add_tensor(theirs, np.full(shape, float("norm" in ours), dtype=np.float32))
    gguf_files.ended(writer)
    os.truncate(file, info.size)
    status, note = file.stat(), file.with_name(file.name + atomic.SUFFIX)
    note.write_text(json.dumps({"sha256": info.sha256, "size": status.st_size, "mtime_ns": status.st_mtime_ns}))


def _matrix(drawn: np.random.Generator, out: int, width: int) -> NDArray[np.uint8]:
    """Random codes [out, bytes of an output] in Q4_0, with one scale for all."""
    blocks = drawn.integers(0, 256, (out, width // 32, BLOCK), dtype=np.uint8)
    blocks[..., :2] = np.frombuffer(np.float16(width**-0.5 / SPREAD).tobytes(), dtype=np.uint8)
    return blocks.reshape(out, -1)
