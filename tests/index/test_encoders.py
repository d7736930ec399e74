"""Encoders: unit vectors, the same everywhere, and clear words when one cannot be had."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memlane.core.errors import ConfigError
from memlane.index.encoders import (
    NAMES,
    STATIC,
    Encoder,
    HashEncoder,
    StaticEncoder,
    onnx_settings,
    open_encoder,
    pieces,
    words,
)

TEXTS = [
    "Where does the deploy key live?",
    "Où est la clé ?",
    "密钥在哪里",
    "กุญแจอยู่ที่ไหน",
    "src/auth.py v2.3.1",
    "🔑 key",
]


@pytest.fixture(scope="module")
def static() -> StaticEncoder:
    return StaticEncoder()


@pytest.mark.parametrize("name", ["static", "hash"])
def test_rows_have_length_one(name: str) -> None:
    """Every text with a word in it becomes a float32 vector of length 1, whatever its language."""
    encoder = open_encoder(name)
    rows = encoder.encode_texts(TEXTS)
    assert (rows.dtype, rows.shape) == (np.dtype(np.float32), (len(TEXTS), encoder.dim))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("name", ["static", "hash"])
@pytest.mark.parametrize("text", ["", "  \n", "?! -- …", "🔑"])
def test_text_without_words_is_zero(name: str, text: str) -> None:
    """Nothing to encode is a row of zeros, not NaN."""
    encoder = open_encoder(name)
    assert encoder.encode_texts([text]).tolist() == [[0.0] * encoder.dim]
    assert encoder.encode_query(text).tolist() == [0.0] * encoder.dim


@pytest.mark.parametrize("name", ["static", "hash", "none"])
def test_no_texts(name: str) -> None:
    """No texts, no rows, but the right width."""
    encoder = open_encoder(name)
    assert encoder.encode_texts([]).shape == (0, encoder.dim)


@pytest.mark.parametrize("name", ["static", "hash"])
def test_query_is_encoded_like_a_text(name: str) -> None:
    """Without counts the built-in encoders make no difference between a question and a text."""
    encoder = open_encoder(name)
    assert encoder.encode_query(TEXTS[0]).tolist() == encoder.encode_texts([TEXTS[0]])[0].tolist()


@pytest.mark.parametrize("name", ["static", "hash"])
def test_neighbours_in_a_batch_do_not_matter(name: str) -> None:
    """A text's vector is the same alone, in a batch of many, and beside empty ones."""
    encoder = open_encoder(name)
    many = encoder.encode_texts(["", *TEXTS, ""] * 100)
    assert many[-7:-1].tolist() == [encoder.encode_texts([text])[0].tolist() for text in TEXTS]


@pytest.mark.parametrize("name", ["static", "hash"])
def test_same_vectors_in_another_process(name: str) -> None:
    """Nothing depends on the process, such as Python's own string hashing."""
    code = (
        "import sys; from memlane.index.encoders import open_encoder; "
        f"sys.stdout.write(open_encoder({name!r}).encode_texts({TEXTS!r}).tobytes().hex())"
    )
    run = subprocess.run([sys.executable, "-X", "utf8", "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == open_encoder(name).encode_texts(TEXTS).tobytes().hex()


def test_static_knows_synonyms(static: StaticEncoder) -> None:
    """A text about the same thing in other words is nearer than one about something else."""
    query = static.encode_query("automobile repair costs")
    near, far = static.encode_texts(["the bill for fixing my car", "a recipe for tomato soup"]) @ query
    assert near > far + 0.2


def test_static_finds_other_scripts(static: StaticEncoder) -> None:
    """Scripts the table does not know are matched by shared pieces of words."""
    notes = ["今天天气很好", "数据库的密码在保险箱里", "ฉันชอบกินข้าวผัด", "пароль лежит в сейфе"]
    vectors = static.encode_texts(notes)
    asked = ["天气怎么样", "数据库密码", "ข้าวผัด", "где лежит пароль"]
    assert [int(np.argmax(vectors @ static.encode_query(query))) for query in asked] == [0, 1, 2, 3]


def test_static_half_an_emoji(static: StaticEncoder) -> None:
    """A lone surrogate, as JSON can carry it, is text like any other."""
    np.testing.assert_allclose(np.linalg.norm(static.encode_query("key \ud83d\udd11 \ud800a")), 1.0, atol=1e-5)


def test_counts_make_a_common_word_weigh_less(static: StaticEncoder) -> None:
    """What every memory of a bank mentions counts for less in a query."""
    weighted = StaticEncoder(static.count_tokens(["Caroline was here"] * 5000))
    name = static.encode_texts(["Caroline"])[0]
    before, after = (float(name @ encoder.encode_query("Caroline pottery")) for encoder in (static, weighted))
    assert after < before / 2


def test_counts_leave_texts_and_fingerprint_alone(static: StaticEncoder) -> None:
    """A bank grows without its stored vectors growing stale."""
    weighted = StaticEncoder(static.count_tokens(TEXTS * 1000))
    assert weighted.encode_texts(TEXTS).tolist() == static.encode_texts(TEXTS).tolist()
    assert weighted.fingerprint == static.fingerprint


def test_use_counts_is_like_counts_from_the_start() -> None:
    """Counts can be replaced while an encoder is in use."""
    first, second = StaticEncoder(), StaticEncoder()
    counts = first.count_tokens(["the deploy key"] * 500)
    first.use_counts(counts * 7)
    first.use_counts(counts)
    assert first.encode_query(TEXTS[0]).tolist() == StaticEncoder(counts).encode_query(TEXTS[0]).tolist()
    assert first.encode_query(TEXTS[0]).tolist() != second.encode_query(TEXTS[0]).tolist()


def test_count_tokens(static: StaticEncoder) -> None:
    """Counts add up over texts, punctuation not counted."""
    counts = static.count_tokens(["red red green", "green, blue!", ""])
    assert sorted(counts[counts > 0].tolist()) == [1, 2, 2]


def test_fingerprint_is_the_tables(static: StaticEncoder) -> None:
    """The shipped files are those the fingerprint was made from."""
    files = [(STATIC / name).read_bytes() for name in ("table.npy", "tokens.npy", "vocab.txt")]
    assert static.fingerprint == f"static-{hashlib.sha256(b''.join(files)).hexdigest()[:12]}"


def test_hash_fingerprint_names_its_width() -> None:
    """Vectors of another width are other vectors."""
    assert HashEncoder(32).fingerprint != HashEncoder(64).fingerprint


def test_none_has_no_dimensions() -> None:
    """The encoder "none" makes rows of nothing, so that callers need no special case."""
    encoder = open_encoder("none")
    assert (encoder.name, encoder.dim, encoder.encode_texts(["a", "b"]).shape) == ("none", 0, (2, 0))


@pytest.mark.parametrize("name", ["static", "hash"])
def test_similarity_rises_from_zero_to_one(name: str) -> None:
    """A cosine of 1 is 1, nothing in common is 0, and more never means less."""
    encoder: Encoder = open_encoder(name)
    values = [encoder.similarity(cosine) for cosine in np.linspace(-1, 1, 41)]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (0.0, 1.0)


def test_static_similarity_is_peoples(static: StaticEncoder) -> None:
    """A cosine means what people said of sentence pairs with that cosine."""
    assert [round(static.similarity(cosine), 2) for cosine in (0.2, 0.5, 0.8, 0.9, 0.95)] == [
        0.09,
        0.36,
        0.67,
        0.76,
        0.88,
    ]


@pytest.mark.parametrize("name", ["magic", "onnx", "onnx:", "static:x", "fastembed:", ""])
def test_unknown_name(name: str) -> None:
    """A name that means nothing is refused with those that mean something."""
    with pytest.raises(ConfigError) as caught:
        open_encoder(name)
    assert (caught.value.code, caught.value.hint) == ("unknown_encoder", f"Use one of: {', '.join(NAMES)}.")


def test_onnx_folder_without_a_model(tmp_path: Path) -> None:
    """The folder is named, or the packages to install where they are missing."""
    with pytest.raises(ConfigError) as caught:
        open_encoder(f"onnx:{tmp_path}")
    assert caught.value.code == "encoder_missing"
    assert str(tmp_path) in caught.value.message


def test_onnx_settings_follow_the_folder(tmp_path: Path) -> None:
    """Pooling and prefix are what the folder's files say, with the model family's habit as default."""
    arctic = tmp_path / "snowflake-arctic-embed-s"
    arctic.mkdir()
    prefix = "Represent this sentence for searching relevant passages: "
    assert onnx_settings(tmp_path) == {"family": "", "pooling": "mean", "query_prefix": ""}
    assert onnx_settings(arctic) == {"family": "arctic", "pooling": "cls", "query_prefix": prefix}
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    (tmp_path / "config_sentence_transformers.json").write_text('{"prompts": {"query": "query: "}}')
    assert onnx_settings(tmp_path) == {"family": "", "pooling": "cls", "query_prefix": "query: "}


def test_fastembed_missing_or_offline() -> None:
    """Without the package the extra is named; with it but no model, the way offline is."""
    with pytest.raises(ConfigError) as caught:
        open_encoder("fastembed:no/such-model")
    assert caught.value.code == "encoder_missing"
    assert caught.value.hint


def test_words() -> None:
    """Lower case, no accents, no punctuation; scripts are kept apart and Hangul whole."""
    assert words("Où est snake_case? Python编程 v2.3 한국어") == [
        "ou", "est", "snake", "case", "python", "编程", "v2", "3", "한국어",
    ]  # fmt: skip


def test_pieces() -> None:
    """Pairs where words are not separated by spaces, three letters with marked ends elsewhere."""
    assert (pieces("编程语"), pieces("编"), pieces("ключ")) == (["编程", "程语"], ["编"], ["<кл", "клю", "люч", "юч>"])


def test_import_is_light() -> None:
    """Optional packages are imported only when asked for."""
    code = (
        "import sys; from memlane.index.encoders import open_encoder; open_encoder('static').encode_query('key'); "
        "print({'onnxruntime', 'tokenizers', 'fastembed', 'torch'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_of_a_very_long_word_the_beginning_counts() -> None:
    encoder = open_encoder("static")
    one, other = encoder.encode_texts(["ab12cd34" * 20, "ab12cd34" * 20_000])
    assert (one == other).all()
