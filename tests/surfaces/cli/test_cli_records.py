"""`memlane records`."""

from __future__ import annotations

from commands import Run
from memlane import Bank


def test_the_records_verbs(run: Run, bank: Bank) -> None:
    made = run("records", "create", "one line\ntwo lines", "--subject", "Lines", "-k", "lines", "--json").json
    assert [row["id"] for row in run("records", "list", "--json").json] == [made["id"]]
    assert [row["id"] for row in run("records", "find", "lines", "--json").json] == [made["id"]]
    assert run("records", "index").json["keywords"] == {"lines": [made["id"]]}
    assert run("records", "validate").code == 0
    (bank.root / "records/bad.md").write_text("x")
    assert run("records", "validate").code == 6
