"""Rows are trained where a draft would reach them; whole anchors fill groups, those of the fill first."""

import torch

from training.masks.rows import GROUP_ROWS, Prompts, asked, chosen, targets

MASKS, VOCABULARY = 3, 50


def prompts(count: int = 3, places: int = 128, seed: int = 0) -> Prompts:
    """Prompts whose text is mostly what the model says; it says tokens that the head lacks, now and then."""
    drawn = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, VOCABULARY + 2, (count, places), generator=drawn)
    greedy = ids.roll(-1, 1)
    wrong = torch.rand(ids.shape, generator=drawn) < 0.3
    greedy[wrong] = (greedy[wrong] + 1) % (VOCABULARY + 2)
    ordinary = torch.arange(places) < torch.tensor([[places], [places - 9], [places - 30]])[:count]
    fill = torch.full((count,), places // 2)
    ordinary[torch.arange(count), fill] = False
    return Prompts(ids, greedy, ordinary, fill)


def reference(one: Prompts, p: int, t: int, j: int) -> bool:
    """Whether the j-th row behind place t is of use, as the definition has it."""
    if not (one.ordinary[p, t] or t == one.fill[p]):
        return False
    for place in range(t, t + j):
        if place + 1 >= one.ids.shape[1] or not one.ordinary[p, place + 1]:
            return False
        if one.ids[p, place + 1] != one.greedy[p, place] or one.greedy[p, place] >= VOCABULARY:
            return False
    return bool(one.greedy[p, t + j] < VOCABULARY)


def test_rows_are_of_use_while_the_text_is_the_model_s_own() -> None:
    one = prompts()
    found = one.reached(MASKS, VOCABULARY)
    for p in range(3):
        for t in range(128):
            assert found[p, t].tolist() == [reference(one, p, t, j) for j in range(1, MASKS + 1)]


def test_whole_anchors_fill_the_groups_and_those_of_the_fill_come_first() -> None:
    one = prompts()
    reached = one.reached(MASKS, VOCABULARY)
    rows = chosen(one, MASKS, VOCABULARY, 6, torch.Generator().manual_seed(1))
    assert rows.anchor.shape == (6, GROUP_ROWS)
    seen = set()
    for prompt, anchors, slots in zip(rows.prompt.tolist(), rows.anchor.tolist(), rows.slot.tolist(), strict=True):
        pairs = [(t, j) for t, j in zip(anchors, slots, strict=True) if t >= 0]
        for t in {t for t, _ in pairs}:
            assert sorted(j for place, j in pairs if place == t) == list(range(1, int(reached[prompt, t].sum()) + 1))
        seen |= {(prompt, t, j) for t, j in pairs}
    assert len(seen) == int(rows.used.sum()) > 0.8 * 6 * GROUP_ROWS
    fullest = chosen(one, MASKS, VOCABULARY, 3, torch.Generator().manual_seed(1))
    assert len(set(fullest.prompt.tolist())) > 1
    in_fill = fullest.anchor[fullest.used] >= 64
    assert in_fill.float().mean() > 0.4


def test_a_row_predicts_the_token_after_its_own_place() -> None:
    one = prompts()
    rows = chosen(one, MASKS, VOCABULARY, 4, torch.Generator().manual_seed(1))
    places = targets(one, rows)
    used = rows.used
    assert torch.equal(places[used], (rows.anchor + rows.slot)[used])
    wanted = one.greedy[rows.prompt[:, None].expand_as(places), places]
    assert (wanted[used] < VOCABULARY).all()


def test_all_rows_that_are_reached_are_asked_once() -> None:
    reached = prompts().reached(MASKS, VOCABULARY)
    found = []
    for rows in asked(reached):
        for prompt, anchors, slots in zip(rows.prompt.tolist(), rows.anchor.tolist(), rows.slot.tolist(), strict=True):
            found += [(prompt, anchor, slot - 1) for anchor, slot in zip(anchors, slots, strict=True)]
    assert sorted(found) == [tuple(place) for place in reached.nonzero().tolist()]
