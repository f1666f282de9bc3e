"""Compiles every Triton kernel for GPUs that this machine need not have, and prints what it compiled.

It must run without ``TRITON_INTERPRET``.
"""

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lacuna_kernels.gpu.attend import KEYS, LEAST, MERGED, attend_kernel, merge_kernel
from lacuna_kernels.gpu.elementwise import gate_kernel, rms_norm_kernel
from lacuna_kernels.gpu.heads import heads_kernel
from lacuna_kernels.gpu.product import INPUTS, LEAST_RANK, OUTPUTS, addition_kernel, product_kernel
from lacuna_kernels.gpu.unmask import blocks_kernel, rows_kernel

CAPABILITIES = (80, 90)
WARP = 32
F32, F16, BF16, I64, I8 = "*fp32", "*fp16", "*bf16", "*i64", "*i8"
INT = "i32"
# Each case: a kernel, the types of its runtime arguments, the values of its compile-time constants.
CASES = [
    *((rms_norm_kernel, [of, of, F32, of, F32, "fp32", *[INT] * 3], (adds, 1024))
      for of in (F32, BF16) for adds in (0, 1)),
    *((blocks_kernel, [of, I64, F32, *[INT] * 3], (1024, 16)) for of in (F32, F16, BF16)),
    *((product_kernel, [BF16, of, F32, F32, of, F32, F32, *[INT] * 6], (of == I8, adds, 0, rows, OUTPUTS, INPUTS))
      for of in (BF16, I8) for rows in (16, 32) for adds in (0, 1)),
    *((addition_kernel, [F32, BF16, BF16, F32, *[INT] * 4], (0, rows, OUTPUTS, rank))
      for rows in (16, 32) for rank in (LEAST_RANK, 64)),
    *((heads_kernel, [of, BF16, *[F32] * 4, I64, I64, BF16, *[INT] * 6, "fp32"], (1, normed, eight, 64))
      for of in (F32, BF16) for normed in (0, 1) for eight in (0, 1)),
    *((attend_kernel, [BF16, I64, *[F32] * 4, *[INT] * 3, "fp32"], (6, eight, 0, LEAST, KEYS, wide))
      for wide in (64, 128) for eight in (0, 1)),
    (merge_kernel, [I64, F32, F32, BF16, *[INT] * 3], (MERGED, KEYS, 128)),
    *((gate_kernel, [of, BF16, *[INT] * 3], (512,)) for of in (F32, BF16)),
    (rows_kernel, [I64, F32, I64, F32, INT, INT], (64, 1024, 16)),
]  # fmt: skip

for capability in CAPABILITIES:
    for kernel, types, constants in CASES:
        names = kernel.arg_names
        signature = dict(zip(names, [*types, *["constexpr"] * len(constants)], strict=True))
        values = {(len(types) + i,): value for i, value in enumerate(constants)}
        target = GPUTarget("cuda", capability, WARP)
        compiled = triton.compile(ASTSource(kernel, signature, constexprs=values), target=target)
        print(capability, kernel.__name__, types[0], len(compiled.asm["cubin"]))
