"""Measures how long ``/health`` takes while the slowest request of each route runs.

Run it with ``python -m tests.server.slowest_requests``. It starts ``lacuna serve`` with the scripted engine. For every
route, one client sends the slowest body again and again, and another client requests ``/health``. The medians and the
99th percentiles are printed as a table.
"""

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

SCRIPTED = Path(__file__).parent / "scripted"
LINES = 3_900
PREFIX = "x = 1\n" * 300_000
# The largest window of which anything follows, with the lines in another order.
WINDOW = "a = b(c)\nb = c(a)\n" * 190, "b = c(a)\nc = a(b)\na = b(c)\n" * 130


def bodies() -> Mapping[str, dict[str, object]]:
    """The slowest known body of every route."""
    same = "    pass\n" * LINES
    shuffled = "".join(f"    a{number * number % 97}()\n" for number in range(LINES))
    update = f"# ... existing code ...\n{shuffled}new()\n# ... existing code ..."
    blanks = f"# ... existing code ...\n#{' ' * 500_000}\n# ... existing code ..."

    def applied(original: str, snippet: str) -> dict[str, object]:
        text = f"<|original_code|>\n{original}<|/original_code|>\n<|update_snippet|>\n{snippet}\n<|/update_snippet|>"
        return {"messages": [{"role": "user", "content": text}]}

    return {
        "/v1/apply/completions, lines alike": applied(same, update),
        "/v1/apply/completions, lines in another order": applied(shuffled[::-1], update),
        "/v1/apply/completions, blanks": applied(same, blanks),
        "/v1/completions": {"prompt": PREFIX, "suffix": "\n", "max_tokens": 4},
        "/v1/completions, headers": {
            "prompt": "###PATH:" * 100_000 + "<|code_prefix|>a<|code_suffix|>b<|code_middle|>"
        },
        "/v1/completions, a window": {
            "prompt": f"<|file_sep|>original/a\n{WINDOW[0]}<|file_sep|>current/a\n{WINDOW[1]}<|file_sep|>updated/a\n"
        },
        "/v1/completions, unknown fields": {"prompt": PREFIX, "suffix": "\n", "other": [[]] * 3_000_000},
        "/v1/fim/completions": {"prompt": PREFIX, "suffix": "\n", "max_tokens": 4},
        "/infill": {"input_prefix": PREFIX, "input_suffix": "\n", "n_predict": 4},
        "/v1/chat/completions, tags": {"messages": [{"role": "user", "content": "<|code_to_edit|>" * 100_000}]},
    }


def post(port: int, path: str, body: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", path, body, {"content-type": "application/json"})
    status = connection.getresponse().status
    connection.close()
    return status


def health(port: int, until: float) -> Iterator[float]:
    """Request ``/health`` again and again, and yield the duration of each request in milliseconds."""
    while time.monotonic() < until:
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/health")
        connection.getresponse().read()
        connection.close()
        yield (time.perf_counter() - began) * 1e3
        time.sleep(0.01)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=8.0, help="for every route")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "lacuna.toml"
        config.write_text('engine = "scripted_engine:load"\nport = 0\n')
        environment = os.environ | {"PYTHONPATH": str(SCRIPTED), "XDG_RUNTIME_DIR": folder, "LACUNA_CACHE": folder}
        command = [sys.executable, "-m", "lacuna_server", "serve", "--config", str(config)]
        with subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as service:
            assert service.stderr is not None
            port = next(int(found[1]) for line in service.stderr if (found := re.search(r"127\.0\.0\.1:(\d+)", line)))
            threading.Thread(target=service.stderr.read, daemon=True).start()
            print("| While | status | requests | /health p50 ms | p99 ms |\n|---|---|---|---|---|")
            for name, body in bodies().items():
                row(port, name, json.dumps(body).encode(), seconds)
            service.terminate()


def row(port: int, name: str, body: bytes, seconds: float) -> None:
    """Measure ``/health`` while a thread sends the requests of one route, and print a row of the table."""
    until, statuses = time.monotonic() + seconds, list[int]()

    def ask() -> None:
        while time.monotonic() < until:
            statuses.append(post(port, name.partition(",")[0], body))

    thread = threading.Thread(target=ask)
    thread.start()
    took = list(health(port, until))
    thread.join()
    p50, p99 = np.percentile(took, [50, 99])
    print(f"| {name} | {statuses[0]} | {len(statuses)} | {p50:.0f} | {p99:.0f} |", flush=True)


if __name__ == "__main__":
    main()
