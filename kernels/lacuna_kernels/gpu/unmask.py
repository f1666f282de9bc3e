"""Unmask with one reading of the vocabulary, in any precision of the logits.

Plain torch reads the logits five times and writes two float32 copies of them; sixteen rows of 49,152 tokens are 3 MB
each time. Here programs read blocks of a row in parallel, and a second launch merges their results.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024
# Lower than every token's key.
NOTHING = tl.constexpr(-(2**63))
# Lower logits are raised to this.
LOWEST = tl.constexpr(-1e30)
# All bits of an int32 except its sign.
BITS = tl.constexpr(0x7FFFFFFF)


@triton.jit
def ordered(b_value):
    """Map a float32's bits to an int32 of the same order, or back: negative numbers have the other bits inverted."""
    return b_value ^ ((b_value >> 31) & BITS)


@triton.jit
def best_keys(b_key, count, BC: tl.constexpr):
    """The ``count`` greatest of ``b_key``, greatest first [BC]. All keys differ, so each is taken once."""
    o_c = tl.arange(0, BC)
    b_best = tl.full([BC], NOTHING, tl.int64)
    for i in range(count):
        best = tl.max(b_key, axis=0)
        b_best = tl.where(o_c == i, best, b_best)
        b_key = tl.where(b_key == best, NOTHING, b_key)
    return b_best


@triton.jit
def blocks_kernel(p_logits, p_keys, p_stats, vocab, stride, count, BV: tl.constexpr, BC: tl.constexpr):
    """For a block z of a row: the best tokens, ``m = max(z)``, ``s = sum(e^(z-m))``."""
    i_row, i_block, num_blocks = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.num_programs(1)
    o_v = i_block * BV + tl.arange(0, BV)
    m_v = o_v < vocab
    # [BV]
    b_z = tl.load(p_logits + i_row * stride + o_v, mask=m_v, other=float("-inf")).to(tl.float32)
    # Finite, so that a block of -inf alone makes no NaN (-inf - -inf).
    b_finite = tl.maximum(b_z, LOWEST)
    most = tl.max(b_finite, axis=0)
    p_own = p_stats + (i_row * num_blocks + i_block) * 2
    tl.store(p_own, most)
    tl.store(p_own + 1, tl.sum(tl.exp(b_finite - most), axis=0))
    # The value in the high bits and the id in the low ones, smaller ids first: one comparison orders by both.
    b_order = ordered(tl.where(b_z == 0.0, 0.0, b_z).to(tl.int32, bitcast=True)).to(tl.int64)  # 0 has one sign
    b_key = tl.where(m_v, (b_order << 32) | (o_v ^ BITS).to(tl.int64), NOTHING)
    o_c = tl.arange(0, BC)
    tl.store(p_keys + (i_row * num_blocks + i_block) * count + o_c, best_keys(b_key, count, BC), mask=o_c < count)


@triton.jit
def rows_kernel(
    p_keys, p_stats, p_ids, p_logp, num_blocks, count,
    BB: tl.constexpr, BK: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Merge the blocks of a row: ids and log-probabilities of the best tokens."""
    i_row = tl.program_id(0).to(tl.int64)
    o_b = tl.arange(0, BB)
    m_b = o_b < num_blocks
    p_own = p_stats + (i_row * num_blocks + o_b) * 2
    # [BB]
    b_most = tl.load(p_own, mask=m_b, other=LOWEST)
    b_sum = tl.load(p_own + 1, mask=m_b, other=0.0)
    most = tl.max(b_most, axis=0)
    log_sum = tl.log(tl.sum(tl.exp(b_most - most) * b_sum, axis=0))
    # [BK]
    o_k = tl.arange(0, BK)
    b_key = tl.load(p_keys + i_row * num_blocks * count + o_k, mask=o_k < num_blocks * count, other=NOTHING)
    # [BC]
    b_best = best_keys(b_key, count, BC)
    o_c = tl.arange(0, BC)
    m_c = o_c < count
    b_value = ordered((b_best >> 32).to(tl.int32)).to(tl.float32, bitcast=True)
    tl.store(p_ids + i_row * count + o_c, (b_best & BITS) ^ BITS, mask=m_c)
    tl.store(p_logp + i_row * count + o_c, b_value - most - log_sum, mask=m_c)


def unmask(logits: Tensor, num_candidates: int) -> tuple[Tensor, Tensor]:
    """As :func:`lacuna_kernels.reference.unmask`; of tokens with equal logits, the smaller id comes first."""
    rows, vocab = logits.shape
    blocks, device = triton.cdiv(vocab, BLOCK), logits.device
    keys = torch.empty((rows, blocks, num_candidates), dtype=torch.int64, device=device)
    stats = torch.empty((rows, blocks, 2), device=device)
    ids = torch.empty((rows, num_candidates), dtype=torch.int64, device=device)
    logp = torch.empty((rows, num_candidates), device=device)
    tile = triton.next_power_of_2(num_candidates)
    with torch.cuda.device_of(logits):
        blocks_kernel[(rows, blocks)](logits, keys, stats, vocab, logits.stride(0), num_candidates, BV=BLOCK, BC=tile)
        rows_kernel[(rows,)](
            keys, stats, ids, logp, blocks, num_candidates,
            BB=triton.next_power_of_2(blocks), BK=triton.next_power_of_2(blocks * num_candidates), BC=tile,
        )  # fmt: skip
    return ids, logp
