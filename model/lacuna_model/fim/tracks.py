"""Runs of tokens that one arena holds, each read after the runs in front of it.

A chain is a sequence of tracks that stand one after the other in a prompt: head, suffix, fill. A token sees all tokens
of the tracks before its own, and its own track up to itself. Chains of several gaps share tracks, so that what stands
in front of all gaps is read once. Where a row lies in the arena means nothing: its place is in its rotary position.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lacuna_kernels import rotary
from lacuna_model.network.arena import Arena
from lacuna_model.network.transformer import Transformer

UNREAD = -1
# Rows of tokens that were given up are squeezed out of the arena once there are so many.
MOST_UNUSED = 256


@dataclass(slots=True, eq=False)
class Track:
    """A run of tokens ``ids``, the first at position ``start``; ``rows`` has the arena row of each, or UNREAD."""

    ids: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    start: int = 0

    def become(self, ids: Sequence[int], start: int) -> int:
        """Hold other tokens at another position; returns how many leading ones stay as they were read."""
        kept = common_prefix(self.ids, ids) if start == self.start else 0
        self.rows = [*self.rows[:kept], *[UNREAD] * (len(ids) - kept)]
        self.ids, self.start = list(ids), start
        return kept

    def forget_from(self, place: int) -> None:
        """Have all tokens from a place on read anew."""
        self.rows[place:] = [UNREAD] * (len(self.rows) - place)

    @property
    def unread(self) -> list[int]:
        """The places of tokens that were not read yet."""
        return [place for place, row in enumerate(self.rows) if row == UNREAD]


Chain = Sequence[Track]


class TrackReader:
    """Reads tracks into an arena of its own, with one model's weights."""

    def __init__(self, transformer: Transformer, dtype: torch.dtype) -> None:
        self._transformer = transformer
        self._device = transformer.final_norm.device
        self.arena = Arena(transformer.config, self._device, dtype)
        self.tracks: list[Track] = []

    def new(self) -> Track:
        """An empty track; its rows are kept until it is dropped."""
        track = Track()
        self.tracks.append(track)
        return track

    def drop(self, track: Track) -> None:
        """The track is not needed any more."""
        self.tracks.remove(track)

    def read(self, chains: Sequence[Chain], most: int | None = None) -> dict[Track, Tensor]:
        """Read what is unread of the chains in one pass, at most ``most`` tokens, those of early tracks first.

        Returns the hidden states [n, H] of the n tokens that were read of each track.
        """
        before: dict[Track, Chain] = {}
        for chain in chains:
            for index, track in enumerate(chain):
                before.setdefault(track, chain[:index])
        chosen: dict[Track, list[int]] = {}
        room = sum(len(track.ids) for track in before) if most is None else most
        for track in before:
            if room > 0 and (places := track.unread[:room]):
                chosen[track] = places
                room -= len(places)
        if not chosen:
            return {}
        tail = self._make_room()
        count = sum(map(len, chosen.values()))
        mask = torch.zeros((count, tail + count), dtype=torch.bool)
        ids: list[int] = []
        positions: list[int] = []
        for track, places in chosen.items():
            first = len(ids)
            for row, place in enumerate(places, start=tail + first):
                track.rows[place] = row
            ids += [track.ids[place] for place in places]
            positions += [track.start + place for place in places]
            _show(mask[first : len(ids)], before[track], track, places)
        hidden = self._pass(ids, positions, mask, tail)
        sizes = [len(places) for places in chosen.values()]
        return dict(zip(chosen, hidden.split_with_sizes(sizes), strict=True))

    def turn(self, track: Track, start: int) -> None:
        """Move what was read of a track to another position: its keys are turned, nothing is read."""
        shift, track.start = start - track.start, start
        rows = [row for row in track.rows if row != UNREAD]
        if not shift or not rows:
            return
        rotations = self._transformer.rotations
        cos, sin = rotations.cos[abs(shift)], rotations.sin[abs(shift)]
        chosen = torch.tensor(rows, device=self._device)
        keys = self.arena.keys
        keys[:, :, chosen] = rotary(keys[:, :, chosen].float(), cos, sin if shift > 0 else -sin).to(keys.dtype)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [n, V] of hidden states [n, H]."""
        return self._transformer.head(hidden)

    def _pass(self, ids: Sequence[int], positions: Sequence[int], mask: Tensor, tail: int) -> Tensor:
        arena, device = self.arena, self._device
        arena.reserve(tail + len(ids))
        arena.head, arena.tail = 0, tail
        x = self._transformer.embed(torch.tensor([ids], device=device))
        return self._transformer.hidden(x, torch.tensor(positions, device=device), arena, mask.to(device))[0]

    def _make_room(self) -> int:
        """The first row behind all that is in use, after squeezing out what is not where that is much."""
        used = sorted(row for track in self.tracks for row in track.rows if row != UNREAD)
        tail = used[-1] + 1 if used else 0
        if tail - len(used) <= MOST_UNUSED:
            return tail
        order = torch.tensor(used, device=self._device)
        for store in (self.arena.keys, self.arena.values):
            store[:, :, : len(used)] = store[:, :, order].clone()
        moved = {row: place for place, row in enumerate(used)} | {UNREAD: UNREAD}
        for track in self.tracks:
            track.rows = [moved[row] for row in track.rows]
        return len(used)


def _show(mask: Tensor, before: Chain, track: Track, places: Sequence[int]) -> None:
    """Let the rows [n, K] of a track's ``places`` see all tracks ``before`` it, and their own up to each place."""
    earlier = [row for one in before for row in one.rows if row != UNREAD]
    mask[:, torch.tensor(earlier, dtype=torch.long)] = True
    own = [(place, row) for place, row in enumerate(track.rows) if row != UNREAD]
    columns = torch.tensor([row for _, row in own], dtype=torch.long)
    order = torch.tensor([place for place, _ in own])
    mask[:, columns] = order[None] <= torch.tensor(places)[:, None]


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two runs begin with alike."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (one, other) in pairs if one != other), min(len(first), len(second)))
