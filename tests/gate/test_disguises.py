"""A secret that is disguised is found, and redaction takes out what is really there, and no more.

Every secret here is put together at run time, so that the file itself holds none.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane.care import audit
from memlane.gate.secrets import check_pii, redact, scan
from memlane.gate.secrets.disguises import plain

TOKEN = "gh" + "p_" + "Zx81kk2PPqLm0aRt5uVw7yB3cD9eF4gH6jKn"
JWK = json.dumps({"kty": "EC", "crv": "P-256", "d": "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE"})
PEM = "-----BEGIN PRI" + "VATE KEY-----\n" + "MC4CAQAwBQYDK2VwBCIEIJ1h" * 3 + "\n-----END PRIVATE KEY-----\n"


def every(sign: str, step: int = 4) -> Callable[[str], str]:
    """Put a sign between the letters of a text."""
    return lambda text: sign.join(text[at : at + step] for at in range(0, len(text), step))


def shifted(upper: int, lower: int, digit: int) -> Callable[[str], str]:
    """Letters and digits as those of another block."""
    starts = {char: start for start, chars in ((upper, "AZ"), (lower, "az"), (digit, "09"))
              for char in map(chr, range(ord(chars[0]), ord(chars[1]) + 1))}  # fmt: skip
    first = {**dict.fromkeys(map(chr, range(65, 91)), 65), **dict.fromkeys(map(chr, range(97, 123)), 97)}
    return lambda text: "".join(
        chr(starts[char] + ord(char) - first.get(char, 48)) if char in starts else char for char in text
    )


def escaped(form: str) -> Callable[[str], str]:
    return lambda text: "".join(form.format(ord(char)) for char in text)


def encoded(encode: Callable[[bytes], bytes]) -> Callable[[str], str]:
    return lambda text: encode(text.encode()).decode()


DISGUISES: dict[str, Callable[[str], str]] = {
    "zero-width space": every("\u200b"),
    "joiner": every("\u200d"),
    "emoji selector": every("\ufe0f"),
    "first selector": every("\ufe00", 1),
    "selector 17": every("\U000e0100"),
    "tag": every("\U000e0041"),
    "soft hyphen": every("\xad"),
    "no-break space": every("\xa0", 12),
    "colours": every("\x1b[31m"),
    "link of a terminal": every("\x1b]8;;\x07"),
    "struck through": every("\u0336", 1),
    "NUL": every("\0", 1),
    "Cyrillic": lambda text: text.translate(str.maketrans("aceopxsjhKMTBH", "асеорхѕјһКМТВН")),
    "Greek": lambda text: text.translate(str.maketrans("AEHIKMNOPTXZov", "ΑΕΗΙΚΜΝΟΡΤΧΖον")),
    "full width": lambda text: "".join(chr(ord(char) + 0xFEE0) for char in text),
    "mathematical": shifted(0x1D400, 0x1D41A, 0x1D7CE),
    "circles": shifted(0x24B6, 0x24D0, 48),
    "base64": encoded(base64.b64encode),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 of an env file": lambda text: base64.b64encode(f"# deploy\nTOKEN={text}\n".encode()).decode(),
    "base64 in lines": lambda text: base64.encodebytes(f"{'x ' * 30}{text}".encode()).decode().strip(),
    "base64 of two bytes each": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "base64 after a path": lambda text: "data/" + base64.b64encode(text.encode()).decode(),
    "base32": encoded(base64.b32encode),
    "hex": lambda text: text.encode().hex(),
    "percent": escaped("%{:02X}"),
    "JSON": escaped("\\u{:04x}"),
    "code": escaped("\\x{:02x}"),
    "entities": escaped("&#{};"),
    "hex entities": escaped("&#x{:X};"),
    "two lines": lambda text: f"{text[:20]}\n{text[20:]}",
    "an early break": lambda text: f"{text[:5]}\n    {text[5:]}",
    "many lines": every("\n", 12),
    "continued": lambda text: f"{text[:15]}\\\n  {text[15:]}",
    "a quotation": lambda text: f"> {text[:15]}\n> {text[15:]}",
    "a comment": lambda text: f"# {text[:15]}\n# {text[15:]}",
    "put together": lambda text: f'"{text[:9]}" + "{text[9:]}"',
    "put together of three": lambda text: f"'{text[:3]}' . '{text[3:19]}' . '{text[19:]}'",
    "strings in lines": lambda text: f'"{text[:9]}"\n    "{text[9:]}"',
}
FRAMES = ["{}", "The build uses {} since May.", "token: {}", '{{"k": "{}"}}', "first line\n\n- `{}`\n- last line"]


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("frame", FRAMES)
def test_a_disguised_token_is_found_and_taken_out(disguise: str, frame: str) -> None:
    """Nothing of it stays: what is left says nothing more, in any disguise."""
    hidden = DISGUISES[disguise](TOKEN)
    text = frame.format(hidden)
    findings = scan(text)
    assert findings, "not found"
    clean = redact(text, findings)
    assert "[REDACTED:" in clean
    rest = clean.split("[REDACTED:")
    assert len(clean) < len(text)
    assert not any(hidden[at : at + 10] in clean for at in range(len(hidden) - 10))
    assert rest[0] == text[: len(rest[0])]


@pytest.mark.parametrize("secret", [PEM, JWK])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.encodebytes, base64.urlsafe_b64encode])
def test_a_key_in_base64_is_found(secret: str, encode: Callable[[bytes], bytes]) -> None:
    for shift in range(4):  # wherever in the code it begins
        assert scan("data: " + encode(("\n" * shift + secret).encode()).decode()), shift


def test_a_finding_names_the_real_place() -> None:
    text = "one\u200b two\nthe \ufe0fkey " + every("\u200b")(TOKEN) + " end"
    (finding,) = scan(text)
    assert (finding.rule, finding.line, finding.column) == ("github-token", 2, 10)
    assert text[finding.start : finding.end] == every("\u200b")(TOKEN)
    assert redact(text, [finding]) == "one\u200b two\nthe \ufe0fkey [REDACTED:github-token] end"


def test_redaction_leaves_emoji_and_other_scripts_alone() -> None:
    text = f"❤️ 👩‍👩‍👧 می‌خواهم naïve “quoted” – Привет, {TOKEN} ☠️"
    assert redact(text, scan(text)) == "❤️ 👩‍👩‍👧 می‌خواهم naïve “quoted” – Привет, [REDACTED:github-token] ☠️"


def test_only_the_escapes_of_the_secret_are_taken_out() -> None:
    text = f"https://a.example/?q=caf%C3%A9&next=%2Fhome%3Ftoken%3D{TOKEN[:20]}%{ord(TOKEN[20]):02x}{TOKEN[21:]}&x=%41"
    assert (
        redact(text, scan(text))
        == "https://a.example/?q=caf%C3%A9&next=%2Fhome%3Ftoken%3D[REDACTED:github-token]&x=%41"
    )


def test_two_tokens_on_two_lines_are_two() -> None:
    other = "xox" + "b-123456789012-1234567890123-Zx81kk2PPqLm0aRt5uVw7yB3"
    text = f"{other}\n{other[::1]}x\n{TOKEN}\n{TOKEN}"
    assert [(f.rule, f.line) for f in scan(text)] == [
        ("slack-token", 1), ("slack-token", 2), ("github-token", 3), ("github-token", 4),
    ]  # fmt: skip


def test_the_word_after_a_token_stays() -> None:
    text = f"The token is {TOKEN}\nRotate it on Monday, at 10:30."
    assert redact(text, scan(text)) == "The token is [REDACTED:github-token]\nRotate it on Monday, at 10:30."


@pytest.mark.parametrize(
    "text",
    [
        "Пароль хранится в сейфе, токен тоже. Ключ лежит там же.",
        "Ο κωδικός φυλάσσεται στο χρηματοκιβώτιο.",
        "トークンは不要です（２０２４年１２月３１日まで）。",
        "密码在保险箱里，令牌也在那里。版本１２.３４",
        "The price is 10\u00a0000\u00a0000 and 12\u202f345\u202f678 in 2024.",
        "See https://example.org/a%20b/c%2Fd?redirect=https%3A%2F%2Fexample.com%2Flogin",
        "&quot;Ship it&quot; &amp; go; 5 &lt; 6 &#8212; done",
        "It ends with a-long-identifier-2024\nAnother line begins here, 10 times.",
        '"one" + "two"\n"three"\n"four"',
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        base64.b64encode(b"The quick brown fox jumps over the lazy dog, twice a day.").decode(),
        "🇩🇪 Deutschland 2024, 🅰️ and ① of ②",
    ],
)  # fmt: skip
def test_ordinary_text_needs_no_alarm(text: str) -> None:
    assert scan(text) == []


def test_the_vaults_guard_reads_through_disguises() -> None:
    """S002-27: also a short word after the name of a credential."""
    assert check_pii("pass\u200bword\u00a0: letmein") == ["password"]


def test_an_audit_strips_what_the_gate_strips(tmp_path: Path) -> None:
    file = tmp_path / "note.md"
    file.write_text("first\n\x1b[31m" + every("\x1b[0m")(TOKEN) + "\nlast\n")
    assert [(leak.line, leak.rule) for leak in audit.scan_file(str(file))] == [(2, "github-token")]


@given(st.text(), st.text(max_size=3))
def test_a_reading_knows_its_places(text: str, more: str) -> None:
    """Every stretch of it stands somewhere in the text, in order."""
    source = text + "\u200bа" + more
    reading = plain(source)
    assert reading is not None
    places = [reading.place(at, at + 1) for at in range(len(reading.text))]
    assert places == sorted(places)
    assert all(0 <= start < end <= len(source) for start, end in places)
