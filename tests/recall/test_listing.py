"""The newest memories come from the index, as they are in their files."""

from __future__ import annotations

from pathlib import Path

from memlane import Bank


def test_the_newest_of_the_vault_are_listed_alike_from_the_index_and_from_the_file(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        bank.add("Deploys go out on Tuesdays.", lane="vault", type="constraint", tags=["release"], title="Deploys")
        for now in ("Alpha", "Beta"):
            bank.add(f"The current project is {now}.", lane="vault", tier="register", topic_id="current")
        gone = bank.add("Nobody works on Sundays, and that will stay so.", lane="vault")
        bank.delete(gone.id)
        from_file = bank.list(lane="vault", limit=10)
        bank.search("deploys")
        assert bank.list(lane="vault", limit=10) == from_file == bank.list(lane="vault")
        bank.add("Reviews take a day.", lane="vault")
        assert [memory.text for memory in bank.list(lane="vault", limit=1)] == ["Reviews take a day."]
