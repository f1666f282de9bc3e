"""The command ``workspace``: times the indexing of a workspace, and the look-up of drafts in it."""

import gc
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from rich.table import Table

from lacuna_model.core.context import lay_out
from lacuna_model.core.errors import RequestError
from lacuna_model.files.scanning import WorkspaceSettings
from lacuna_model.fim.drafting.drafts import ProjectDrafts
from lacuna_model.fim.reading import MAX_DRAFTED
from lacuna_model.prior.index import Index, IndexedDocuments, Segment
from lacuna_model.prior.indexing import refresh
from lacuna_model.tokens.tokenizer import Tokenizer

COMMITTED = 2  # true tokens that each step commits
BEFORE, FILL, AFTER = 400, 48, 200  # tokens of prefix, gap and suffix


class WorkspaceCost(msgspec.Struct, frozen=True):
    """The size of the index, its time (wall and CPU seconds) and memory (MB), and the CPU milliseconds of a step."""

    files: int
    tokens: int
    index_s: float
    index_cpu_s: float
    held_mb: float
    steps: int
    step_ms_p50: float
    step_ms_p95: float


def bench_workspace(
    tokenizer: Tokenizer,
    root: Path,
    *,
    places: int = 40,
    seed: int = 0,
) -> WorkspaceCost:
    """Indexes the files under ``root``, then looks up drafts at random places as the denoising loop does.

    Raises RequestError if no file is long enough.
    """
    before, wall, cpu = _resident(), time.perf_counter(), time.process_time()
    documents = refresh(root, WorkspaceSettings(), tokenizer).documents
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    held = _resident() - before
    times = list(_steps(documents, tokenizer, places, random.Random(seed)))
    p50, p95 = np.percentile(times, [50, 95])
    tokens = len(documents.array.tokens)
    return WorkspaceCost(len(documents.names), tokens, wall, cpu, held, len(times), float(p50), float(p95))


def _resident() -> float:
    """Returns the resident memory of this process in MB, after a garbage collection."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def _steps(documents: IndexedDocuments[str], tokenizer: Tokenizer, places: int, rng: random.Random) -> Iterator[float]:
    """Yields the CPU milliseconds of every step at random places; the file of each place is left out of the index."""
    index = Index.for_vocabulary(tokenizer.vocab_size)
    index.replace_all(documents)
    borders = documents.array.borders
    long = [i for i in range(len(documents.names)) if borders[i + 1] - borders[i] > BEFORE + FILL + AFTER + 1]
    if not long:
        raise RequestError(f"no file has {BEFORE + FILL + AFTER} tokens")
    for _ in range(places):
        file = rng.choice(long)
        tokens = documents.array.tokens[borders[file] + 1 : borders[file + 1]].tolist()
        at = rng.randrange(BEFORE, len(tokens) - FILL - AFTER)
        texts = [tokenizer.decode(part) for part in (tokens[at - BEFORE : at], tokens[at + FILL :][:AFTER])]
        layout = lay_out(texts, tokenizer)
        here = IndexedDocuments.index({str(i): tokenizer.encode(text) for i, text in enumerate(texts)}, index.kind)
        known = [*index.segments(documents.names[file]), Segment(here)]
        for step in range(0, FILL, COMMITTED):
            started = time.thread_time()
            _draft(known, [*layout.segments[0], *tokens[at : at + step]])
            yield (time.thread_time() - started) * 1e3


def _draft(known: Sequence[Segment], text: Sequence[int]) -> None:
    """Looks up the longest draft that a pass may verify."""
    drafts = ProjectDrafts(known, text)
    for _ in range(MAX_DRAFTED):
        proposal = drafts.proposal()
        if proposal is None:
            return
        drafts.take(proposal.token)


def table(cost: WorkspaceCost) -> Table:
    """Returns the costs as a table."""
    grid = Table(title=f"{cost.files} files, {cost.tokens:,} tokens")
    grid.add_column("what")
    grid.add_column("cost", justify="right")
    grid.add_row("index", f"{cost.index_s:.1f} s, {cost.index_cpu_s:.1f} s of CPU time")
    grid.add_row("memory", f"{cost.held_mb:.0f} MB")
    grid.add_row("per million tokens", f"{cost.index_cpu_s / cost.tokens * 1e6:.1f} s of CPU time")
    grid.add_row(f"step (of {cost.steps})", f"p50 {cost.step_ms_p50:.1f}, p95 {cost.step_ms_p95:.1f} ms of CPU time")
    return grid
