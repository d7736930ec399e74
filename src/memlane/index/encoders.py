"""Text to unit vectors: the built-in table, and optional models.

    encoder = open_encoder("static")              # offline, numpy only: the default
    vectors = encoder.encode_texts(["a note"])    # (1, dim) float32, rows of length 1
    scores = vectors @ encoder.encode_query("which note?")

A text without any word (empty, punctuation only) is a row of zeros: it is close to nothing, not even to itself.
Does not chunk, store, compare or cache vectors: the index does.
"""

from __future__ import annotations

import json
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from memlane.core.errors import ConfigError
from memlane.core.patterns import lazily
from memlane.core.values import NamedTuple
from memlane.gate import shown
from memlane.index.words import Remembered

if TYPE_CHECKING:
    from numpy.typing import NDArray  # it takes a fifth as long to load as NumPy itself

Vectors = np.ndarray[Any, np.dtype[np.float32]]

NAMES = ("static", "none", "hash", "onnx:<folder>", "fastembed", "fastembed:<model>")
FASTEMBED_MODEL = "snowflake/snowflake-arctic-embed-s"
STATIC = Path(__file__).with_name("static")
ARCTIC_QUERY = "Represent this sentence for searching relevant passages: "
SIF_A = 1e-3  # how fast frequent tokens lose weight
COUNTS_PRIOR = 10_000.0  # general text counts as much as this many tokens of the bank
# Cosines, and the similarity (0…1) that people gave to pairs with that cosine: piecewise linear, least squares on STS-B
# train with the ends held at 0 and 1. On STS-B dev the mean error is .13; of the pairs at .85 or more (cosine .937),
# 84 % were judged 4 of 5 or more, with a mean of 4.5.
STATIC_SIMILARITY = ((0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 1.0), (0.0, 0.087, 0.243, 0.47, 0.587, 0.667, 0.763, 1.0))
# The same for arctic-embed-s, where unrelated texts have a cosine of .7 (fitted to every second pair of train; .85 is a
# cosine of .975, and 86 % of the dev pairs there were judged 4 or more).
ARCTIC_SIMILARITY = ((0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0), (0.0, 0.03, 0.075, 0.112, 0.337, 0.554, 0.698, 1.0))
PLAIN_SIMILARITY = ((0.0, 1.0), (0.0, 1.0))  # not measured: the cosine itself

LATIN = "0-9a-z\u00df-\u024f"
_WORD = f"[{LATIN}]+|[^\\W_{LATIN}]+"
WORD = lazily(_WORD)
WORD_OR_BREAK = lazily(f"{_WORD}|(?<=[.!?;:])\\s+|\\n+")  # a sentence ends there
BREAK, END = -1, -2  # the tokens between two sentences, and after a text
# Thai to Khmer, kana to Chinese: scripts that put no spaces between words.
_UNSPACED = lazily(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


class Encoder(Protocol):
    """What the index needs from an encoder. `fingerprint` changes whenever the vectors would."""

    name: str
    dim: int
    fingerprint: str

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 (or 0, for a text without words) for each text."""

    def encode_query(self, text: str) -> Vectors:
        """The vector to compare texts with; some models treat a question differently from a text."""

    def similarity(self, cosine: float) -> float:
        """The cosine of two texts as 0…1, on a scale that means the same for every encoder."""


def open_encoder(name: str = "static") -> Encoder:
    """The encoder of that name. Raises ConfigError for an unknown one, or when its package or model is missing."""
    kind, _, argument = name.partition(":")
    if name == "static":
        return StaticEncoder()
    if name == "none":
        return NoEncoder()
    if name == "hash":
        return HashEncoder()
    if kind == "onnx" and argument:
        return OnnxEncoder(Path(argument))
    if kind == "fastembed" and (argument or name == kind):
        return FastembedEncoder(argument or FASTEMBED_MODEL)
    hint = f"Use one of: {', '.join(NAMES)}."
    raise ConfigError(f"There is no encoder {shown(name)!r}.", hint=hint, code="unknown_encoder")


class NoEncoder:
    """No vectors at all: search by words and links alone."""

    name = "none"
    dim = 0
    fingerprint = "none"

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(texts), 0), np.float32)

    def encode_query(self, text: str) -> Vectors:
        return np.zeros(0, np.float32)

    def similarity(self, cosine: float) -> float:
        return 0.0


class _Scaled:
    """An encoder with a table from cosines to similarities."""

    _similarity: tuple[tuple[float, ...], tuple[float, ...]] = PLAIN_SIMILARITY

    def similarity(self, cosine: float) -> float:
        return float(np.interp(cosine, *self._similarity))


class HashEncoder(_Scaled):
    """Words and their character trigrams hashed into `dim` places: for tests, the same everywhere, needs no data."""

    name = "hash"

    def __init__(self, dim: int = 64) -> None:
        self.dim = dim
        self.fingerprint = f"hash-1-{dim}"

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in words(text):
                padded = f"<{word}>"
                for piece in (padded, *(padded[at : at + 3] for at in range(len(padded) - 2))):
                    code = crc(piece)
                    row[code % self.dim] += 1.0 if code & 0x80000000 else -1.0
        return unit(rows)

    def encode_query(self, text: str) -> Vectors:
        row: Vectors = self.encode_texts([text])[0]
        return row


class Sentences(NamedTuple):
    """The tokens of a text, how many each of its sentences has, and the length of the sum of each one's vectors."""

    tokens: NDArray[np.intp]
    sizes: list[int]
    lengths: Vectors
    above: int  # tokens that stand above the text


class StaticEncoder(_Scaled):
    """A table of token vectors, distilled from a sentence encoder by `scripts/distill.py` and shipped with memlane.

    A text is the weighted sum of its tokens' vectors, scaled to length 1. Frequent tokens weigh less: a / (a + p), with
    p the token's probability in general text. In a query, p is its probability in the bank if that is greater: a name
    that every memory mentions does not tell them apart. This takes the bank's `counts` (the sum of `count_tokens` over
    its texts); they affect queries only, so stored vectors and the fingerprint stay valid while a bank grows.
    Words that the table does not know become hashed character pieces: they match themselves and hardly anything else.
    """

    name = "static"
    _similarity = STATIC_SIMILARITY

    def __init__(self, counts: NDArray[np.int64] | None = None) -> None:
        about = json.loads((STATIC / "about.json").read_text("utf-8"))
        # int8, read page by page and shared by processes
        self._table = np.asarray(np.load(STATIC / "table.npy", mmap_mode="r"))
        self._scale, self._probability = np.load(STATIC / "tokens.npy")
        self._tokens = Tokens(vocabulary(), len(self._table))
        self._weights = self._token_weights(self._probability)
        self._lengths = np.full(len(self._table), -1, np.float32)  # of the rows, as far as they were asked for
        self.dim = int(self._table.shape[1])
        self.fingerprint = f"static-{about['digest']}"
        self.use_counts(counts)

    def use_counts(self, counts: NDArray[np.int64] | None) -> None:
        """Weight the tokens of queries by these counts from now on; with None, as in no bank. Cheap."""
        if counts is None:
            self._counts, self._query_weights = np.zeros(len(self._table), np.int64), self._weights
            return
        self._counts = counts
        in_bank = (counts + COUNTS_PRIOR * self._probability) / (counts.sum() + COUNTS_PRIOR)
        self._query_weights = self._token_weights(np.maximum(in_bank, self._probability))

    def count_tokens(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """How often each token of the table occurs in these texts."""
        return self.counted(np.fromiter(chain.from_iterable(map(self._tokens.ids, texts)), np.intp))

    def counted(self, tokens: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """How often each token of the table is among these."""
        return np.bincount(tokens, minlength=len(self._table)).astype(np.int64)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        return self._encode([*map(self._tokens.ids, texts)], self._weights)

    def encode_query(self, text: str) -> Vectors:
        row: Vectors = self._encode([self._tokens.ids(text)], self._query_weights)[0]
        return row

    def encode_passages(self, texts: Iterable[tuple[str, str]]) -> tuple[Vectors, list[Sentences]]:
        """The vectors of texts, with what stands above each; and what the sentences of both are made of.

        Where there is no token, there is one that is like no other.
        """
        ids: list[int] = []
        lengths_above = []
        for above, text in texts:
            head = self._tokens.in_sentences(above)
            ids += [*head, BREAK, *self._tokens.in_sentences(text), END]
            lengths_above.append(len(head) - head.count(BREAK))
        rows = np.zeros((len(lengths_above), self.dim), np.float32)
        found = []
        for row, of_head, (tokens, sizes) in zip(rows, lengths_above, _sentences(np.array(ids, np.intp)), strict=True):
            some = tokens if sizes else np.array([len(self._table) - 1])
            weights, vectors = self._weights.take(some), self._table.take(some, axis=0).astype(np.float32)
            if sizes:
                np.matmul(weights, vectors, out=row)
            lengths = _lengths_of_sums(weights, vectors, sizes or [1])
            found.append(Sentences(some, sizes or [1], lengths, of_head if sizes else 1))
        return unit(rows), found

    def query_tokens(self, factors: Mapping[str, float], texts: int) -> tuple[NDArray[np.intp], Vectors]:
        """The tokens of a query's words, once each, and how much each counts, 1 in total.

        The fewer of so many texts have it, the more; and by the factor of its word.
        """
        counts: dict[int, float] = {}
        for word, factor in factors.items():
            for id in self._tokens.of_word(word):
                counts[id] = max(counts.get(id, 0.0), factor)
        ids = np.array(list(counts), np.intp)
        having = np.minimum(self._counts[ids], texts)
        weights = self._query_weights[ids] * np.log(1 + (texts - having + 0.5) / (having + 0.5)) * list(counts.values())
        return ids, (weights / max(float(weights.sum()), 1e-9)).astype(np.float32)

    def compared(
        self, tokens: NDArray[np.intp], others: NDArray[np.intp], vectors: Sequence[Vectors]
    ) -> tuple[Vectors, Vectors]:
        """How like each token each of the others is, as a cosine; and what it adds to the product of its text's sum
        with each of these vectors.
        """
        right = self._table.take(others, axis=0).astype(np.float32)
        products = self._table.take(tokens, axis=0).astype(np.float32) @ np.concatenate((right, vectors)).T
        lengths = self._lengths_of(tokens)[:, None] * self._lengths_of(others)
        near = products[:, : len(others)] / np.maximum(lengths, 1e-9)
        return near, products[:, len(others) :] * self._weights.take(tokens)[:, None]

    def _lengths_of(self, tokens: NDArray[np.intp]) -> Vectors:
        """How long the rows of these tokens are; worked out once for each."""
        lengths: Vectors = self._lengths.take(tokens)
        if lengths.min(initial=0) < 0:
            rows = self._table.take(tokens, axis=0).astype(np.float32)
            lengths = self._lengths[tokens] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        return lengths

    def _token_weights(self, probability: NDArray[np.floating[Any]]) -> Vectors:
        weights: Vectors = (self._scale * (SIF_A / (SIF_A + probability))).astype(np.float32)
        return weights

    def _encode(self, texts: Sequence[list[int]], weights: Vectors) -> Vectors:
        """The vectors of texts, given by their tokens."""
        # One text at a time: fast enough, needs little memory, and a vector cannot depend on the texts around it.
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, ids in zip(rows, texts, strict=True):
            if len(ids) > _LONG_TEXT:
                distinct, counts = np.unique(np.array(ids, np.intp), return_counts=True)
                factors = weights[distinct] * counts.astype(np.float32)
                np.matmul(factors, self._table[distinct].astype(np.float32), out=row)
            elif ids:
                np.matmul(weights.take(ids), self._table.take(ids, axis=0).astype(np.float32), out=row)
        return unit(rows)


def _sentences(ids: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], list[int]]]:
    """The tokens of each of some texts, and how many of them are in each of its sentences."""
    is_token = ids >= 0
    tokens, breaks = ids[is_token], np.flatnonzero(~is_token)
    sizes = np.diff(breaks, prepend=-1) - 1
    text_ends = np.flatnonzero(ids[breaks] == END) + 1
    tokens_ends, all_sizes = np.cumsum(sizes)[text_ends - 1].tolist(), sizes.tolist()
    at = start = 0
    for end, tokens_end in zip(text_ends.tolist(), tokens_ends, strict=True):
        yield tokens[at:tokens_end], [size for size in all_sizes[start:end] if size]
        at, start = tokens_end, end


def _lengths_of_sums(weights: Vectors, vectors: Vectors, sizes: Sequence[int]) -> Vectors:
    """How long the weighted sums of so many vectors each are, one after the other."""
    lengths, at = [], 0
    for start in range(0, len(sizes), _SUMS):  # for very many, one matrix for all would be a large one, mostly of zeros
        some = sizes[start : start + _SUMS]
        begin, end = at, at + sum(some)
        factors = np.zeros((len(some), end - begin), np.float32)
        for row, size in zip(factors, some, strict=True):
            row[at - begin : at - begin + size] = weights[at : at + size]
            at += size
        sums = factors @ vectors[begin:end]
        lengths.append(np.sqrt(np.einsum("ij,ij->i", sums, sums)))
    return lengths[0] if len(lengths) == 1 else np.concatenate(lengths)


@cache
def built_in() -> StaticEncoder:
    """The built-in encoder, for a closer look where a model made the vectors."""
    return StaticEncoder()


@cache
def vocabulary() -> Mapping[str, int]:
    """The words that the built-in table knows, each with its row: nearly all of English that is common."""
    tokens = (STATIC / "vocab.txt").read_text("utf-8").split("\n")
    return dict(zip(tokens, range(len(tokens)), strict=True))


_USUAL_WORD = 20  # characters; only for a longer word it matters how long those of the vocabulary are
_LONGEST_WORD = 100  # characters; the rest of a longer word is ignored
_SUMS = 32  # sentences that are added up together
_LONG_TEXT = 4_096  # tokens; of a longer text, each is looked up once
_MOST_KNOWN = 200_000  # words; keeps what is remembered of them below some 30 MB


class Tokens:
    """Lower-cased, accent-free WordPiece (greedy longest match) over a vocabulary, without punctuation.

    The rows of the table beyond the vocabulary are for hashed pieces of words that are not in it.
    """

    def __init__(self, ids: Mapping[str, int], rows: int) -> None:
        self._ids = ids
        self._hashed = rows - len(self._ids)
        self._known = Remembered(self._split, _MOST_KNOWN)

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._ids))

    def ids(self, text: str) -> list[int]:
        return list(chain.from_iterable(map(self._known.__getitem__, words(text))))

    def in_sentences(self, text: str) -> list[int]:
        """The same, with a BREAK between two sentences."""
        return list(chain.from_iterable(map(self._known.__getitem__, WORD_OR_BREAK.findall(plain(text)))))

    def of_word(self, word: str) -> tuple[int, ...]:
        """The same of one of the `words` of a text."""
        return self._known[word]

    def _split(self, word: str) -> tuple[int, ...]:
        if word.isspace():
            return (BREAK,)
        if not _is_unspaced(word):
            word = word[:_LONGEST_WORD]  # a longer one is a key or a blob: the rest means nothing and takes time
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            most = len(word) if len(word) <= _USUAL_WORD else min(len(word), start + self._longest)
            for end in range(most, start, -1):
                id = self._ids.get(prefix + word[start:end])
                if id is not None:
                    break
            else:
                return tuple(len(self._ids) + crc(piece) % self._hashed for piece in pieces(word))
            ids.append(id)
            start = end
        return tuple(ids)


def words(text: str) -> list[str]:
    """The words of a text for the encoders here: lower case, no accents, no punctuation."""
    return WORD.findall(plain(text))


def plain(text: str) -> str:
    """A text in lower case and without accents."""
    text = text.lower()
    if not text.isascii():
        parts = unicodedata.normalize("NFD", text)
        text = unicodedata.normalize("NFC", "".join(char for char in parts if unicodedata.category(char) != "Mn"))
    return text


def pieces(word: str) -> list[str]:
    """Overlapping pieces of an unknown word: pairs in scripts that put no spaces between words, else three letters."""
    if _is_unspaced(word):
        return [word[at : at + 2] for at in range(max(len(word) - 1, 1))]
    padded = f"<{word}>"
    return [padded[at : at + 3] for at in range(len(padded) - 2)]


def _is_unspaced(word: str) -> bool:
    return not word[0].isascii() and _UNSPACED.match(word) is not None


def crc(piece: str) -> int:
    return zlib.crc32(piece.encode("utf-8", "surrogatepass"))  # half an emoji is still text


def unit(rows: Vectors) -> Vectors:
    """Each row scaled to length 1; a row of zeros stays as it is."""
    lengths = np.sqrt(np.add.reduce(rows * rows, axis=1, keepdims=True))
    lengths[lengths == 0] = 1
    result: Vectors = np.divide(rows, lengths, dtype=np.float32)
    return result


def _package(name: str, encoder: str) -> Any:
    """Import an optional package. Raises ConfigError that tells how to install it."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(
            f"The encoder {encoder!r} needs the package {name!r}.",
            hint=f"Install it beside memlane: pip install {name}",
            code="encoder_missing",
        ) from None


class OnnxEncoder(_Scaled):
    """A local ONNX sentence encoder: a folder with model.onnx (or onnx/model.onnx) and tokenizer.json.

    Pooling is what `1_Pooling/config.json` says; without that file, the first token for arctic models, else the mean.
    The query prefix is what `config_sentence_transformers.json` says, or the one arctic models were trained with.
    """

    def __init__(self, folder: Path) -> None:
        self.name = f"onnx:{folder}"
        onnxruntime = _package("onnxruntime", self.name)
        tokenizers = _package("tokenizers", self.name)
        model = next((path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()), None)
        if model is None or not (folder / "tokenizer.json").is_file():
            raise ConfigError(
                f"The folder {str(folder)!r} holds no model.onnx and tokenizer.json.",
                hint='Name the folder of an exported sentence encoder, as in encoder = "onnx:models/arctic-embed-s".',
                code="encoder_missing",
            )
        settings = onnx_settings(folder)
        self._cls = settings["pooling"] == "cls"
        self._prefix = settings["query_prefix"]
        if settings["family"] == "arctic":
            self._similarity = ARCTIC_SIMILARITY
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(512)
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._inputs = {node.name for node in self._session.get_inputs()}
        self.dim = int(self._session.get_outputs()[0].shape[-1])
        from hashlib import file_digest

        with model.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()[:12]
        self.fingerprint = f"onnx-{digest}-{settings['pooling']}"

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.dim), np.float32)
        filled = [at for at, text in enumerate(texts) if text.strip()]
        filled.sort(key=lambda at: len(texts[at]))  # a batch of similar lengths needs little padding
        for start in range(0, len(filled), 16):
            batch = filled[start : start + 16]
            rows[batch] = self._run([texts[at] for at in batch])
        return rows

    def encode_query(self, text: str) -> Vectors:
        row: Vectors = self.encode_texts([self._prefix + text if text.strip() else ""])[0]
        return row

    def _run(self, texts: list[str]) -> Vectors:
        encodings = self._tokenizer.encode_batch(texts)
        width = max(len(encoding.ids) for encoding in encodings)
        ids = np.zeros((len(texts), width), np.int64)
        for row, encoding in zip(ids, encodings, strict=True):
            row[: len(encoding.ids)] = encoding.ids
        mask = np.arange(width) < np.array([[len(encoding.ids)] for encoding in encodings])
        feed = {"input_ids": ids, "attention_mask": mask.astype(np.int64), "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        if states.ndim == 2:  # the model does the pooling
            return unit(states)
        return unit(states[:, 0] if self._cls else (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True))


class FastembedEncoder(_Scaled):
    """A model from the fastembed hub, downloaded on first use."""

    def __init__(self, model: str) -> None:
        fastembed = _package("fastembed", "fastembed")
        try:
            self._model = fastembed.TextEmbedding(model)
        except Exception as error:  # offline, unknown model, full disk: fastembed passes on what its downloader raised
            raise ConfigError(
                f"The model {model!r} could not be loaded: {type(error).__name__}.",
                hint='It is downloaded on first use. Go online once, or use encoder = "static" or "onnx:<folder>".',
                code="encoder_missing",
            ) from error
        self.name = f"fastembed:{model}"
        if "arctic-embed" in model:
            self._similarity = ARCTIC_SIMILARITY
        self.dim = int(self._model.embedding_size)
        self.fingerprint = self.name

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.dim), np.float32)
        filled = [at for at, text in enumerate(texts) if text.strip()]
        for at, row in zip(filled, self._model.embed([texts[at] for at in filled]), strict=True):
            rows[at] = row
        return unit(rows)

    def encode_query(self, text: str) -> Vectors:
        if not text.strip():
            return np.zeros(self.dim, np.float32)
        row: Vectors = unit(np.asarray(list(self._model.query_embed(text)), np.float32))[0]
        return row


def onnx_settings(folder: Path) -> dict[str, str]:
    """Family, pooling and query prefix of a model, taken from the name and the files of its folder."""

    def read(name: str) -> dict[str, Any]:
        path = folder / name
        values = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        return values if isinstance(values, dict) else {}

    arctic = "arctic" in f"{folder.resolve().name} {read('config.json').get('_name_or_path', '')}".lower()
    pooling = read("1_Pooling/config.json")
    first = pooling.get("pooling_mode_cls_token", False) if pooling else arctic
    prompts = read("config_sentence_transformers.json").get("prompts") or {}
    return {
        "family": "arctic" if arctic else "",
        "pooling": "cls" if first else "mean",
        "query_prefix": prompts.get("query", ARCTIC_QUERY if arctic else ""),
    }
