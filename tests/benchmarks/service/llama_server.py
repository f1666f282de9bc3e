"""llama.cpp's own server on a port of this machine: ``python -m tests.benchmarks.service.llama_server GGUF PORT``.

Its options are those of llama.vim's documentation for CPUs: ``-b 1024 -ub 1024 --cache-reuse 256``.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

from lacuna_model.core.errors import RequestError

START_S = 120.0
BATCH, REUSED, CELLS = 1024, 256, 16_384


@asynccontextmanager
async def llama_server(model: str, port: int, threads: int = 2) -> AsyncIterator[str]:
    """A server with a GGUF file; gives its address. Raises RequestError if it does not start in time."""
    command = (sys.executable, "-m", __spec__.name, model, str(port), str(threads))
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(int(START_S / 0.25)):
            await asyncio.sleep(0.25)
            if process.returncode is not None:
                break
            if await asyncio.to_thread(_answers, address):
                yield address
                return
        raise RequestError(f"llama.cpp's server does not start with {Path(model).name}: is xllamacpp installed?")
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def _answers(address: str) -> bool:
    try:
        with build_opener(ProxyHandler({})).open(f"{address}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


async def _forever() -> None:
    await asyncio.Event().wait()


def main(model: str, port: str, threads: str = "2") -> None:
    """Serves until the process is ended."""
    import xllamacpp  # type: ignore[import-untyped]

    params = xllamacpp.CommonParams()
    params.model.path, params.port = model, int(port)
    params.hostnames = ["127.0.0.1"]
    params.n_batch = params.n_ubatch = BATCH
    params.n_cache_reuse, params.n_ctx, params.n_parallel = REUSED, CELLS, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    asyncio.run(_forever())


if __name__ == "__main__":
    main(*sys.argv[1:])
