"""A Llama-shaped decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied embedding.

Two ways through it: `Decoder.forward` is dense and causal, for training and as a reference; the parts (`embed`,
`rotations`, per layer `qkv`, `out`, `mlp`, then `unembed`) work on packed tokens of many requests, and whoever drives
them brings the attention over its own cache. Shapes below: n tokens, h heads, g KV heads, e per head, d wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

WEIGHTS = Path(__file__).parent / "weights"


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder; `heads` is a multiple of `kv_heads`, `per_head` is even."""

    width: int
    layers: int
    heads: int
    kv_heads: int
    per_head: int
    inner: int
    entries: int = 1024
    positions: int = 2048
    base: float = 10_000.0
    """Longest wavelength of the rotary positions, in units of 2 pi tokens."""

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values that a token takes in a cache of 4-byte numbers, all layers."""
        return 2 * 4 * self.layers * self.kv_heads * self.per_head


TARGET = Shape(width=192, layers=6, heads=6, kv_heads=2, per_head=32, inner=336)
DRAFT = Shape(width=96, layers=2, heads=3, kv_heads=1, per_head=32, inner=192)
SHAPES = {"target": TARGET, "draft": DRAFT}


class Layer(nn.Module):
    """One decoder layer, in parts."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        queries, keys = shape.heads * shape.per_head, shape.kv_heads * shape.per_head
        self.norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.qkv_weights = nn.Linear(shape.width, queries + 2 * keys, bias=False)
        self.out_weights = nn.Linear(queries, shape.width, bias=False)
        self.mlp_norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.gate_up = nn.Linear(shape.width, 2 * shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def qkv(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (..., h, e), keys and values (..., g, e) of `x` (..., d); queries and keys are rotated.

        `cos` and `sin` are what `Decoder.rotations` gives for the positions of the tokens.
        """
        shape = self.shape
        heads = self.qkv_weights(self.norm(x)).unflatten(-1, (shape.heads + 2 * shape.kv_heads, shape.per_head))
        turned, values = heads.split([shape.heads + shape.kv_heads, shape.kv_heads], -2)
        first, second = turned.chunk(2, -1)
        turned = turned * cos.unsqueeze(-2) + torch.cat((-second, first), -1) * sin.unsqueeze(-2)
        queries, keys = turned.split([shape.heads, shape.kv_heads], -2)
        return queries, keys, values

    def out(self, x: Tensor, attended: Tensor) -> Tensor:
        """`x` (..., d) plus the projection of `attended` (..., h * e)."""
        return x + functional.linear(attended, self.out_weights.weight)

    def mlp(self, x: Tensor) -> Tensor:
        """`x` (..., d) plus the gated feed-forward part of it."""
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, -1)
        return x + functional.linear(functional.silu(gate) * up, self.down.weight)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Dense and causal over `x` (batch, n, d)."""
        queries, keys, values = self.qkv(x, cos, sin)
        attended = functional.scaled_dot_product_attention(
            queries.transpose(1, 2),
            keys.transpose(1, 2),
            values.transpose(1, 2),
            is_causal=True,
            enable_gqa=True,
        )
        return self.mlp(self.out(x, attended.transpose(1, 2).flatten(-2)))


class Decoder(nn.Module):
    """The whole model. Freshly made it holds random weights from torch's generator."""

    cos: Tensor
    sin: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.entries, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=1e-5)
        turns = shape.base ** (-torch.arange(0, shape.per_head, 2).float() / shape.per_head)
        angles = torch.outer(torch.arange(shape.positions).float(), turns).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        nn.init.normal_(self.embedding.weight, std=0.05)
        for name, parameter in self.layers.named_parameters():
            if parameter.dim() > 1:
                # What a layer adds begins small beside what passes by; what it looks with begins at full size, since
                # attention that starts out flat learns to look back very late at this width.
                gain = 0.05 if name.endswith(("out_weights.weight", "down.weight")) else 1.0
                nn.init.normal_(parameter, std=gain / math.sqrt(parameter.shape[1]))

    def layer(self, number: int) -> Layer:
        """Layer `number`, counted from 0."""
        found = self.layers[number]
        assert isinstance(found, Layer)
        return found

    def embed(self, ids: Tensor) -> Tensor:
        """Ids (...) int64 to (..., d)."""
        return functional.embedding(ids, self.embedding.weight)

    def rotations(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine, each (n, e), for `positions` (n) int64, each below `shape.positions`."""
        return self.cos[positions], self.sin[positions]

    def unembed(self, x: Tensor) -> Tensor:
        """Logits (..., entries) of the last layer's output `x` (..., d): final norm, then the tied embedding."""
        return functional.linear(self.norm(x), self.embedding.weight)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits (batch, n, entries) of `ids` (batch, n), dense and causal from position 0."""
        count = ids.shape[1]
        cos, sin = self.cos[:count], self.sin[:count]
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.unembed(x)


def load(
    which: str, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32, folder: Path = WEIGHTS
) -> Decoder:
    """The trained "target" or "draft" model, ready to run without gradients.

    Raises KeyError for another name, FileNotFoundError without weights, RuntimeError where they do not fit the shape.
    """
    model = Decoder(SHAPES[which])
    model.load_state_dict(load_file(folder / f"{which}.safetensors"))
    return model.to(device=device, dtype=dtype).eval().requires_grad_(False)
