"""What leaves the bank, and what a change makes of a text that was read with blanks in it."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest

from canaries import PEM, TOKEN, leaked
from commands import Run
from hostile_texts import in_proportion
from memlane import Bank, Refused, gate
from memlane.core.model import Memory
from memlane.gate.fingerprints import fingerprint
from memlane.gate.outgoing import cleaned

MARK = "[REDACTED:github-token]"


def test_what_holds_no_secret_is_handed_on_as_it_is() -> None:
    value = {"text": "Deploys go out on Tuesdays.", "tags": ["release"], "count": 3}
    assert cleaned(value, gate.DEFAULT) is value


def test_a_secret_is_blanked_wherever_it_stands() -> None:
    value = {"a": f"one {TOKEN} two", "b": [f"{TOKEN}"], TOKEN: (1, f"x {TOKEN}"), "n": None}
    assert cleaned(value, gate.DEFAULT) == {
        "a": f"one {MARK} two", "b": [MARK], MARK: (1, f"x {MARK}"), "n": None,
    }  # fmt: skip


def test_pieces_of_a_secret_are_blanked_beside_the_whole() -> None:
    """A title, a passage and a line are cut out of a text: by themselves they would not look like a secret."""
    value = {
        "text": f"The token is {TOKEN}, and so on.",
        "title": f"The token is {TOKEN[:20]}...",
        "passage": f"{TOKEN[9:]}, and so on.",
        "middle": TOKEN[6:22],
    }
    assert cleaned(value, gate.DEFAULT) == {
        "text": f"The token is {MARK}, and so on.",
        "title": f"The token is {MARK}...",
        "passage": f"{MARK}, and so on.",
        "middle": MARK,
    }


def test_the_whole_can_be_given_beside_what_is_shown() -> None:
    line = PEM.splitlines()[7]
    assert cleaned({"line": line}, gate.DEFAULT, [f"key:\n{PEM}\n"]) == {"line": "[REDACTED:private-key]"}


def test_a_value_is_a_secret_by_its_name() -> None:
    assert cleaned({"password": "Kx9#mQ2" + "vLp7z"}, gate.DEFAULT) == {"password": "[REDACTED:password]"}


def test_hidden_characters_hide_no_secret() -> None:
    assert cleaned(f"{TOKEN[:9]}\u200b{TOKEN[9:]}", gate.DEFAULT) == MARK


def test_a_memory_keeps_its_address() -> None:
    memory = Memory(f"notes:{TOKEN}", "notes", f"x {TOKEN}", f"x {TOKEN[:30]}...", f"/bank/{TOKEN}.md")
    assert cleaned(memory, gate.DEFAULT) == Memory(memory.id, "notes", f"x {MARK}", f"x {MARK}...", memory.file)


def test_what_is_allowed_is_shown() -> None:
    guard = gate.Guard(allow=(fingerprint("github-token", TOKEN, "abcd"),))
    assert cleaned(f"x {TOKEN}", guard) == f"x {TOKEN}"
    assert (
        cleaned(f"x {TOKEN} memlane:allow revoked in 2020", gate.DEFAULT) == f"x {TOKEN} memlane:allow revoked in 2020"
    )
    assert cleaned(f"x {TOKEN}", gate.Guard(secrets="off")) == f"x {TOKEN}"


# -- changes


@pytest.fixture
def pulled(bank: Bank) -> Bank:
    """A bank in which a secret came by a pull into a memory of each lane that can be changed."""
    places = {
        "notes": bank.add("Deploys: here.", title="a"),
        "vault": bank.add("Deploys go here.", lane="vault"),
        "topics": bank.add("Deploys: here.", lane="topics", scope="ops/deploys", title="a"),
        "records": bank.add("Deploys:\nhere.", lane="records", title="a", tags=["a"], scope="global"),
        "layers": bank.add("Deploys: here.", lane="layers", project="api", type="known_issues"),
    }
    for memory in places.values():
        path = Path(memory.file)
        path.write_text(path.read_text().replace("here", f"with {TOKEN}"))
    return Bank.open(bank.config.project)


@pytest.mark.parametrize("lane", ["notes", "vault", "topics", "records", "layers"])
def test_a_blank_is_not_written_over_the_value(pulled: Bank, lane: str) -> None:
    [memory] = pulled.list(lane=lane)
    before = Path(memory.file).read_bytes()
    assert MARK in memory.text
    with pytest.raises(Refused, match="stands for a value of the file that is not shown"):
        pulled.update(memory.id, f"{memory.text} And more.")
    assert Path(memory.file).read_bytes() == before


@pytest.mark.parametrize("lane", ["notes", "vault", "topics", "records", "layers"])
def test_the_rest_of_such_a_memory_can_be_changed(pulled: Bank, lane: str) -> None:
    [memory] = pulled.list(lane=lane)
    pulled.append(pulled.edit(memory.id, "Deploys", "Releases").id, "More.")
    [after] = pulled.list(lane=lane)
    stored = Path(after.file).read_text()
    assert (TOKEN in stored, "Releases" in stored, "More." in stored, MARK in stored) == (True, True, True, False)


def test_a_secret_can_be_replaced_by_where_it_lives(pulled: Bank) -> None:
    pulled.update("notes:a", "Deploys: the token is in the CI's own store.")
    assert not leaked(Path(pulled.get("notes:a").file).read_text())


def test_a_redacted_passage_is_not_there_to_be_edited(run: Run, pulled: Bank) -> None:
    result = run("edit", "notes:a", "--old", f"with {MARK}", "--new", "x")
    assert (result.code, "give a passage beside it" in result.err) == (2, True)


def test_the_merge_driver_names_what_it_found(run: Run, bank: Bank, tmp_path: Path) -> None:
    texts = {"base": "a\n\nb\n", "ours": "a changed\n\nb\n", "theirs": f"a\n\nb\n\nkey {TOKEN}\n"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    result = run("merge-driver", "note", *texts, "notes/a.md")
    said = "memlane: notes/a.md:5:5: GitHub token is in the merged file"
    assert (result.code, result.err.startswith(said), leaked(result.err)) == (0, True, "")
    assert TOKEN in (tmp_path / "ours").read_text()


def test_many_pieces_of_a_text_with_many_secrets_take_time_in_proportion() -> None:
    """Not every value is looked for in every one of them."""
    dice = random.Random(1)
    values = ["".join(dice.choices(string.ascii_letters + string.digits, k=20)) for _ in range(400)]
    lines = [f"password: {value} and so" for value in values]
    assert in_proportion(lambda text: cleaned(text.splitlines(), gate.DEFAULT, [text]), "\n".join(lines))
    marks = [line.split()[1] for line in cleaned(lines, gate.DEFAULT)]
    pieces = cleaned([f"it was {value[:12]}" for value in values], gate.DEFAULT, lines)
    assert pieces == [f"it was {mark}" for mark in marks]
