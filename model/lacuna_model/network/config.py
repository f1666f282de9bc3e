"""The shape of a transformer, general enough for Llama, Qwen2, Qwen3, Dream and LLaDA checkpoints."""

import msgspec


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All parameters of the forward pass besides the weights.

    ``shift``: the output at a position predicts the next slot (Dream, DiffuCoder, Fast-dLLM v2, and every model adapted
    from an autoregressive one without retraining its head); otherwise its own (LLaDA, SDAR). It is never inferred from
    the shape: Open-dCoder and A2D share a shape and differ. Positions are divided by ``rope_scale`` (linear scaling).
    ``attention_bias`` and ``qk_norm`` tell which tensors the layers have.
    """

    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    rope_theta: float
    rope_scale: float = 1.0
    rms_norm_eps: float = 1e-5
    max_positions: int = 8192
    tie_embeddings: bool = True
    attention_bias: bool = False
    qk_norm: bool = False
    shift: bool = True
    mask_id: int | None = None
    block_size: int = 16

    @property
    def num_weights(self) -> int:
        """The weights of all matrices, the largest part of a model."""
        heads = (2 * self.num_heads + 2 * self.num_kv_heads) * self.head_dim
        layer = self.hidden_size * (heads + 3 * self.intermediate_size)
        return self.num_layers * layer + (2 - self.tie_embeddings) * self.vocab_size * self.hidden_size
