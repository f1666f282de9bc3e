"""The second run on a GPU: trains the mask rows of the model that drafts, for as long as the machine is there.

    python -m tests.gpu.train --pack FOLDER --corpus CORPUS [--tokens N] [--taught NAME=FILE ...]     here
    python -m tests.gpu.pieces FILE                                                                   there, each piece
    python -m tests.gpu.train --seconds 390                                                           there, last

It writes its figures into ``$OUT/train.json`` as it goes, and the mask rows at each mark. ``--pretend`` does all of it
on this machine with a tiny model.
"""

import argparse
import os
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import torch
from tests.gpu import pieces
from tests.gpu.harness import Report
from tests.gpu.packed import Pack, from_bytes, to_bytes

from lacuna_model.loading import rows_file
from training import loop
from training.base import Base
from training.feeding import Batch, ahead, batched, tokens_a_pass
from training.fitting import RANK, RATE, SLOTS, SOFT, Fit
from training.loop import Progress

# Shares of the time after which the mask rows are measured and written, besides the end.
MARKS = (120 / 390, 240 / 390)
NOTICE_S = 5.0
# Tokens of a batch, and as many rows. On an H100 8,192 give 68,000 rows a second and 32,768 give 73,000.
BATCH = 8_192
MAX_FILE = 16 << 20
# Options of a training that takes seconds.
TINY = ("--batch", "128", "--slots", "4", "--rank", "2")


def run(chosen: argparse.Namespace, report: Report) -> None:
    """Check the weights, train, and write the mask rows at each mark."""
    began = time.monotonic()
    device = torch.device(chosen.device)
    torch.backends.cuda.enable_cudnn_sdp(False)  # it makes a plan for every shape
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    pack = from_bytes(pieces.joined(chosen.place))
    base = pack.base(device, dtype)
    report.add("pack_s", time.monotonic() - began, "10")
    check(pack, base, report)
    report.add("texts_tokens", sum(map(len, pack.texts)))
    held = {
        name: [one.to(device) for one in batched(some[: chosen.held], pack.about.fim, chosen.batch)]
        for name, some in pack.prompts.items()
        if name.startswith("held_out") and some
    }
    fit = Fit(base, slots=chosen.slots, rank=chosen.rank, rate=chosen.rate, soft=chosen.soft, seed=chosen.seed)
    if chosen.begin:
        fit.begin_from(chosen.begin)
    training, found = _Training(fit, held, report, chosen, began), Progress()
    training.measure("start")
    options = {"rows": chosen.batch, "done": training.done, "notice": training.notice, "every_s": chosen.notice}
    with closing(ahead(batched(pack.samples(chosen.seed), pack.about.fim, chosen.batch), fit.device)) as feed:
        loop.train(fit.step, feed, found, **options)
    training.mark("end", found)


class _Training:
    """What a training says and writes as it goes."""

    def __init__(
        self, fit: Fit, held: dict[str, list[Batch]], report: Report, chosen: argparse.Namespace, began: float
    ) -> None:
        self._fit, self._held, self._report, self._chosen, self._began = fit, held, report, chosen, began
        self._marks = [(share, f"{round(share * chosen.seconds)}") for share in MARKS]
        self._before = (0.0, 0)

    def done(self, now: Progress) -> float:
        return now.steps / self._chosen.steps if self._chosen.steps else now.seconds / self._chosen.seconds

    def notice(self, found: Progress) -> None:
        seconds, rows = self._before
        self._before = (found.seconds, found.rows)
        speed = (found.rows - rows) / max(found.seconds - seconds, 1e-6)
        memory = torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else 0.0
        print(
            f"  {found.seconds:5.0f} s, step {found.steps}, {found.tokens:,} tokens, {found.rows:,} rows, "
            f"{speed:,.0f} rows/s, loss {found.loss:.3f}, {memory:.1f} GB, share {found.share:g}",
            flush=True,
        )
        if self._marks and self.done(found) >= self._marks[0][0]:
            self.mark(self._marks.pop(0)[1], found)

    def mark(self, name: str, found: Progress) -> None:
        """Write the mask rows, then measure them."""
        path = self._chosen.out / f"masks-{name}.safetensors"
        rows_file.write(path, *self._fit.kept())
        self._report.add(f"{name} bytes", path.stat().st_size, f"less than {MAX_FILE}")
        trained = {"s": round(found.seconds, 1), "steps": found.steps, "tokens": found.tokens, "rows": found.rows}
        self._report.add(f"{name} trained", trained)
        self._report.add(f"{name} loss", found.loss)
        self.measure(name)
        self._report.add(f"{name} at_s", time.monotonic() - self._began)

    def measure(self, name: str) -> None:
        """The acceptance by slot on held-out prompts, against the base itself and each teacher."""
        for key, batches in self._held.items():
            accepted = self._fit.acceptance(batches)
            self._report.add(f"{name} {key}", [round(one, 4) for one in accepted])
            self._report.add(f"{name} {key} tokens a pass", tokens_a_pass(accepted))


def check(pack: Pack, base: Base, report: Report) -> None:
    """Compare the logits after the stored row with those where the pack was made. Raises ValueError."""
    ids, wanted = (part.to(base.device) for part in pack.row)
    found = (base.read(ids[None]).states[0, -1] @ base.head.T).float()
    alike = float(torch.nn.functional.cosine_similarity(found, wanted, dim=0))
    report.add("row's cosine", alike, "0.999")
    report.add("row's likeliest tokens", [int(found.argmax()), int(wanted.argmax())], "the same")
    report.add("row's largest difference", float((found - wanted).abs().max()), "below 0.5")
    if not alike > 0.98:
        raise ValueError("the weights are not those that were packed")


def pack_here(chosen: argparse.Namespace) -> None:
    """Write the pieces."""
    from tests.gpu import packing

    from lacuna_model.hub import models
    from training.masks import plain_form

    began = time.monotonic()
    about, weights = plain_form(models.weights(chosen.model), drafts=True)
    taught = {name: Path(path) for name, _, path in (one.partition("=") for one in chosen.taught)}
    pack = packing.make(about, weights, chosen.corpus, tokens=chosen.tokens, taught=taught)
    blob = to_bytes(pack)
    paths = pieces.cut(blob, chosen.pack, chosen.piece_bytes)
    total = sum(path.stat().st_size for path in paths)
    print(
        f"{len(paths)} pieces, {total:,} bytes ({len(blob):,} before), {sum(map(len, pack.texts)):,} tokens of "
        f"{len(pack.texts):,} texts, vocabulary {pack.about.config.vocab_size:,}, "
        f"prompts { ({name: len(some) for name, some in pack.prompts.items()}) }, {time.monotonic() - began:.0f} s"
    )


def pretend(folder: Path) -> int:
    """All of it with a tiny model: pack, pieces, training, and what the mask rows' file says."""
    from tests.gpu import pretended

    begun = pretended.pack()
    for path in pieces.cut(to_bytes(begun), folder / "pieces", 20_000):
        print(pieces.place(path, folder / "there"))
    out, there = folder / "out", folder / "there"
    words = ["--seconds", "4", "--steps", "24", "--notice", "0.2", "--out", str(out), "--place", str(there)]
    code = main([*words, *TINY])
    config, tensors = rows_file.stored(out / "masks-end.safetensors", begun.about.config)
    print(f"{config}, {len(tensors)} tensors")
    return code


def main(words: list[str] | None = None) -> int:
    """Do what the options say; returns the exit code."""
    parser = argparse.ArgumentParser(description="The training run on a GPU.")
    parser.add_argument("--pack", type=Path, help="write the pieces into this folder")
    parser.add_argument("--model", default="qwen2.5-coder-0.5b")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--tokens", type=int, default=10_000_000, help="of all texts in the pack")
    parser.add_argument("--taught", nargs="*", default=[], help="NAME=FILE of a teacher's prompts: held_out_...")
    parser.add_argument("--piece-bytes", type=int, default=pieces.MAX_BYTES)
    parser.add_argument("--place", type=Path, default=pieces.PLACE, help="where the pieces were put")
    parser.add_argument("--seconds", type=float, default=390.0)
    parser.add_argument("--steps", type=int, default=0, help="so many steps, whatever time they take")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--begin", type=Path, help="go on from the mask rows in this file, with a lower --rate")
    parser.add_argument("--slots", type=int, default=SLOTS)
    parser.add_argument("--rank", type=int, default=RANK)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--soft", type=float, default=SOFT)
    parser.add_argument("--held", type=int, default=1000, help="held-out prompts that are measured, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--notice", type=float, default=NOTICE_S)
    parser.add_argument("--batch", type=int, default=BATCH, help="tokens of a batch, and as many rows")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "/tmp/lacuna-gpu")))
    parser.add_argument("--pretend", action="store_true", help="all of it here, tiny")
    chosen = parser.parse_args(words)
    if chosen.pretend:
        with tempfile.TemporaryDirectory() as folder:
            return pretend(Path(folder))
    try:
        if chosen.pack:
            pack_here(chosen)
        else:
            chosen.out.mkdir(parents=True, exist_ok=True)
            run(chosen, Report(chosen.out / "train.json"))
    except pieces.PiecesError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
