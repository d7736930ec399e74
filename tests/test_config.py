"""Settings: where they come from, what is refused, what is adopted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import tree, trusted
from memlane import Bank, ConfigError, InvalidInput, NotEnabled, NotTrusted, StorageError, TopicLane, config
from memlane.exchange import adopt


def write(path: Path, text: str) -> Path:
    """A configuration that the user trusts, the user's own or a project's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return trusted(path)


# -- precedence


def test_each_value_knows_its_source(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags before environment before project before user before default."""
    project = write(
        tmp_path / "memlane.toml", "[memory]\nenabled = true\nrecency_boost_days = 3\n[vault]\nmax_active = 5\n"
    )
    user = write(home / ".config/memlane/config.toml", "[memory]\nrecency_boost_days = 9\nrecency_boost_factor = 1.5\n")
    monkeypatch.setenv("MEMLANE_VAULT_MAX_ACTIVE", "7")
    monkeypatch.setenv("MEMLANE_STORAGE_STRATEGY", "user")
    found = config.load(tmp_path, {"memory.storage_strategy": "project"})
    keys = ("storage_strategy", "recency_boost_days", "recency_boost_factor", "enabled")
    assert {key: (found[f"memory.{key}"], found.sources[f"memory.{key}"]) for key in keys} == {
        "storage_strategy": ("project", "flag"),
        "recency_boost_days": (3, str(project)),
        "recency_boost_factor": (1.5, str(user)),
        "enabled": (True, str(project)),
    }
    assert (found["vault.max_active"], found.sources["vault.max_active"]) == (7, "MEMLANE_VAULT_MAX_ACTIVE")
    assert (found["gate.email"], found.sources["gate.email"]) == (False, "default")


def test_a_file_that_changes_unseen_counts_at_once(tmp_path: Path) -> None:
    """What is kept of a file goes by its content, not by its size and time."""
    path = write(tmp_path / "memlane.toml", "[memory]\nenabled = true\nrecency_boost_days = 3\n")
    before, info = config.load(tmp_path), path.stat()
    write(path, "[memory]\nenabled = true\nrecency_boost_days = 4\n")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    days = [one["memory.recency_boost_days"] for one in (before, config.load(tmp_path))]
    assert (days, path.stat().st_size) == ([3, 4], info.st_size)


def test_a_bank_is_found_from_any_subfolder(tmp_path: Path) -> None:
    Bank.init(tmp_path)
    (tmp_path / "a/b").mkdir(parents=True)
    assert Bank.open(tmp_path / "a/b").root == tmp_path / ".memories"


def test_the_environment_can_name_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Bank.init(tmp_path / ".")
    monkeypatch.setenv("MEMLANE_BANK", str(tmp_path))
    monkeypatch.chdir("/")
    assert Bank.open().root == tmp_path / ".memories"


def test_without_a_bank_memory_is_not_enabled(tmp_path: Path) -> None:
    """S003-02"""
    with pytest.raises(NotEnabled) as caught:
        Bank.open(tmp_path)
    assert str(caught.value).startswith("Memory system is not enabled")
    assert "memlane init" in caught.value.hint
    assert tree(tmp_path) == {}


def test_a_bank_made_of_a_folder_says_how_to_open_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        Bank(str(tmp_path))  # type: ignore[arg-type]
    assert "Bank.open(folder)" in caught.value.hint


def test_a_bank_can_be_switched_off(tmp_path: Path) -> None:
    write(tmp_path / "memlane.toml", "[memory]\nenabled = false\n")
    with pytest.raises(NotEnabled):
        Bank.open(tmp_path)


@pytest.mark.parametrize("path", ["~/elsewhere", "../elsewhere"])
@pytest.mark.parametrize("other", ["", '[directory_structure]\nmemory_path = "own"\n'])
def test_an_external_path_holds_the_whole_memory(tmp_path: Path, home: Path, path: str, other: str) -> None:
    """S000-20, S000-21, S000-23, S000-25: topics as the lane alone has them, the rest in a hidden folder of it."""
    project = tmp_path / "project"
    external = f'[memory_configuration]\nexternal_path = "{path}"\n'
    write(project / "memlane.toml", f"[memory]\nenabled = true\n{other}{external}")
    with Bank.open(project) as bank:
        note = bank.add("text")
        bank.topics.store("auth/oauth2", "Refresh fails on Mondays.")
        bank.add("Rolled.", lane="vault")
        expected = (home if path.startswith("~") else tmp_path) / "elsewhere"
        assert note.path.resolve().parent == expected.resolve() / ".memories"
        assert bank.topics.root.resolve() == expected.resolve()
        assert sorted(memory.lane for memory in bank.list()) == ["notes", "topics", "vault"]
        assert list(bank.problems()) == []
    assert list(tree(project)) == ["memlane.toml"]
    assert {"auth/oauth2.md", "index.md", ".memories/vault.jsonl"} <= set(tree(expected))


def test_a_store_of_topics_at_an_external_path_is_read_as_topics(tmp_path: Path) -> None:
    """S000-20, S000-26: a store that is already there is the one that is used."""
    lane = TopicLane(tmp_path / "store")
    lane.store("system/task-tools", "Hooks run before tools.", date="2025-01-10")
    write(tmp_path / "p/memlane.toml", '[memory]\nenabled=true\n[memory_configuration]\nexternal_path = "../store"\n')
    with Bank.open(tmp_path / "p") as bank:
        assert [(hit.memory.lane, hit.memory.text) for hit in bank.search("hooks tools")] == [
            ("topics", "**Context:** ad-hoc\n**Problem:** Hooks run before tools.")
        ]
        bank.topics.store("system/task-tools", "They run after them, too.")
        assert len(bank.topics.load("system/task-tools")) == 2
    assert not (tmp_path / "store/topics").exists()


def test_an_external_folder_that_is_a_bank_stays_one(tmp_path: Path) -> None:
    """Its folder was the bank itself before topics were kept there."""
    write(tmp_path / "elsewhere/vault.jsonl", "")
    write(tmp_path / "elsewhere/topics/auth/oauth2.md", "## 2025-01-10: Old\n**Problem**: It broke.\n")
    write(tmp_path / "elsewhere/day.md", "Deploys go out on Tuesdays.\n")
    write(tmp_path / "p/memlane.toml", '[memory]\nenabled=true\n[memory_configuration]\nexternal_path="../elsewhere"\n')
    with Bank.open(tmp_path / "p") as bank:
        assert sorted(memory.id for memory in bank.list()) == ["notes:day", "topics:auth/oauth2/2025-01-10-old"]


def test_settings_can_be_given_in_python(tmp_path: Path) -> None:
    Bank.init(tmp_path)
    assert Bank.open(tmp_path, memory__recency_boost_days=30).config["memory.recency_boost_days"] == 30


# -- what is refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[memory]\nstorage_strategy = "cloud"', 'memory.storage_strategy must be "project" or "user".'),
        ("[memory]\nrecency_boost_days = -1", "memory.recency_boost_days must be a whole number, at least 0."),
        ("[memory]\nrecency_boost_days = 1.5", "memory.recency_boost_days must be a whole number, at least 0."),
        ("[memory]\nrecency_boost_factor = 0.5", "memory.recency_boost_factor must be a number, at least 1."),
        ('[memory]\nenabled = "yes"', "memory.enabled must be true or false."),
        ("[vault]\nscopes = [5]", "vault.scopes must be a list of text."),
        (
            '[mcp]\ntoolsets = ["valut"]',
            "mcp.toolsets must be a list of vault, topics, layers, records, knowledge-graph, keys.",
        ),
        (
            "[profile]\nsimilarity_threshold = 70",
            "profile.similarity_threshold must be a number, at least 0, at most 1.",
        ),
        ("[memory]\nrecency_bost_days = 1", "there is no key 'recency_bost_days' in [memory]."),
        ("[memori]\nenabled = true", "there is no table [memori]."),
        ("enabled = true", "there is no table [enabled]."),
        ('[[allow]]\nfingerprint = "x"', "each [[allow]] needs a fingerprint and a reason."),
        ("allow = 5", "each [[allow]] needs a fingerprint and a reason."),
    ],
)
def test_a_wrong_setting_names_file_key_and_what_is_allowed(tmp_path: Path, text: str, message: str) -> None:
    """S003-06"""
    path = write(tmp_path / "memlane.toml", text + "\n")
    with pytest.raises(ConfigError) as caught:
        config.load(tmp_path)
    assert str(caught.value) == f"{path}: {message}"
    assert caught.value.hint


def test_a_misspelt_key_is_answered_with_the_right_one(tmp_path: Path) -> None:
    write(tmp_path / "memlane.toml", "[memory]\nrecency_bost_days = 1\n")
    with pytest.raises(ConfigError) as caught:
        config.load(tmp_path)
    assert caught.value.hint == "Did you mean memory.recency_boost_days?"


def test_a_key_that_is_like_none_is_answered_with_all_of_its_table(tmp_path: Path) -> None:
    write(tmp_path / "memlane.toml", "[memory]\nbogus = 1\n")
    with pytest.raises(ConfigError) as caught:
        config.load(tmp_path)
    assert caught.value.hint.startswith("There are: memory.enabled, memory.storage_strategy, ")


@pytest.mark.parametrize("data", [b"not toml [", b"\xff\xfe"])
def test_a_broken_file_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "memlane.toml").write_bytes(data)
    trusted(tmp_path / "memlane.toml")
    with pytest.raises(ConfigError, match=r"memlane\.toml"):
        config.load(tmp_path)


def test_a_wrong_environment_variable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLANE_RECENCY_BOOST_DAYS", "soon")
    with pytest.raises(
        ConfigError, match=r"MEMLANE_RECENCY_BOOST_DAYS: memory\.recency_boost_days must be a whole number"
    ):
        config.load(tmp_path)


@pytest.mark.parametrize("written", ["vault,topics", " vault , topics", '["vault", "topics"]'])
def test_a_list_is_read_from_text_with_commas_or_as_in_the_file(written: str) -> None:
    assert config.parsed("mcp.toolsets", written) == ["vault", "topics"]


def test_an_unknown_flag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no setting"):
        config.load(tmp_path, {"memory.colour": "blue"})


@pytest.mark.parametrize(
    "lanes", ['topics = "memory"\nlayers = "memory"', 'topics = "memory"\nlayers = "memory/x"', 'records = ".memories"']
)
def test_overlapping_lanes_are_refused(tmp_path: Path, lanes: str) -> None:
    write(tmp_path / "memlane.toml", f"[memory]\nenabled = true\n[lanes]\n{lanes}\n")
    with pytest.raises(ConfigError, match="overlap"):
        Bank.open(tmp_path)


def test_a_config_toml_of_another_program_is_not_ours(tmp_path: Path) -> None:
    write(tmp_path / "config.toml", "[server]\nport = 1\n")
    assert config.find_project(tmp_path) is None


@pytest.mark.parametrize("text", ['[memory]\nlimit = "4G"\n', "[memory]\nenabled = true\nlimit = 4\n", "memory = 5\n"])
def test_a_config_toml_that_shares_a_table_name_blocks_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path / "config.toml", text)
    assert config.load(tmp_path)["memory.enabled"] is ("enabled" in text)


def test_a_named_folder_must_exist(tmp_path: Path) -> None:
    """A mistyped --bank must not end up in a bank further up."""
    Bank.init(tmp_path)
    with pytest.raises(ConfigError, match="no such folder"):
        Bank.open(tmp_path / "nosuch/dir")


def test_an_unknown_setting_is_not_echoed_when_it_looks_like_a_secret(tmp_path: Path) -> None:
    secret = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    with pytest.raises(ConfigError) as caught:
        config.load(tmp_path, {secret: 1})
    assert secret not in str(caught.value) + caught.value.hint


def test_without_a_home_folder_a_bank_can_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user trusts is remembered there."""
    (tmp_path / "file").write_text("not a folder")
    project = tmp_path / "project"
    project.mkdir()
    Bank.init(project).add("text", title="mine")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    bank = Bank.open(project)
    assert bank.get("notes:mine").text == "text"
    with pytest.raises(NotTrusted):
        bank.add("more")
    with pytest.raises(StorageError):
        Bank.init(project)


def test_a_folder_that_is_gone_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ConfigError, match="current folder is gone"):
        Bank.open()


# -- making a bank


def test_init_writes_the_configuration_and_what_git_is_to_leave_out(tmp_path: Path) -> None:
    Bank.init(tmp_path)
    files = tree(tmp_path)
    assert files.pop("memlane.toml") == b'[memory]\nstorage_strategy = "project"\nenabled = true\n'
    assert [*files] == [".memories/.gitignore"]


def test_init_is_safe_to_repeat(tmp_path: Path) -> None:
    Bank.init(tmp_path).add("text", title="kept")
    before = tree(tmp_path)
    Bank.init(tmp_path)
    assert tree(tmp_path) == before


def test_init_keeps_what_a_user_wrote(tmp_path: Path) -> None:
    text = "# mine\n[memory]   # the bank\nrecency_boost_days = 3  # short\nenabled = false\n\n[vault]\nmax_active = 5"
    write(tmp_path / "memlane.toml", text)
    Bank.init(tmp_path)
    expected = text.replace("# the bank\n", '# the bank\nstorage_strategy = "project"\n').replace("= false", "= true")
    assert (tmp_path / "memlane.toml").read_text() == expected


def test_init_of_the_users_own_bank(tmp_path: Path, home: Path) -> None:
    Bank.init(tmp_path, user=True)
    memory = Bank.open(tmp_path).add("text", title="a")
    assert memory.path == home / ".local/share/memlane/bank/a.md"
    assert tree(tmp_path) == {}


def test_an_earlier_bank_of_the_user_is_adopted_where_it_is(tmp_path: Path, home: Path) -> None:
    earlier = home / ".local/share/mcp-markdown-ragdocs/memories"
    earlier.mkdir(parents=True)
    (earlier / "old.md").write_text("As it was.\n")
    assert Bank.init(tmp_path, user=True).root == earlier
    assert Bank.open(tmp_path).get("notes:old").text == "As it was.\n"
    (home / ".local/share/memlane/bank").mkdir(parents=True)
    assert Bank.open(tmp_path).root == home / ".local/share/memlane/bank"


def test_the_users_own_bank_is_closed_to_others(tmp_path: Path, home: Path) -> None:
    """Made in a project's folder, too, and then it is the bank that is opened."""
    Bank.init(tmp_path)
    bank = Bank.init(tmp_path, user=True)
    assert bank.root == home / ".local/share/memlane/bank"
    assert bank.root.stat().st_mode & 0o777 == 0o700


def test_the_users_bank_does_not_take_over_a_project(tmp_path: Path) -> None:
    Bank.init(tmp_path).add("text", title="mine")
    Bank.init(tmp_path, user=True)
    assert [memory.id for memory in Bank.open(tmp_path).list()] == ["notes:mine"]


def test_init_completes_a_seed_003_configuration_where_it_is(tmp_path: Path) -> None:
    text = '[memory]\nenabled = true\nstorage_strategy = "user"\nrecency_boost_days = 3\n[server]\nport = 1\n'
    write(tmp_path / "config.toml", text)
    Bank.open(tmp_path).add("text", title="mine")
    bank = Bank.init(tmp_path)
    assert list(tree(tmp_path)) == ["config.toml"]
    assert (tmp_path / "config.toml").read_text() == text
    assert [memory.id for memory in bank.list()] == ["notes:mine"]


def test_init_keeps_windows_line_ends(tmp_path: Path) -> None:
    (tmp_path / "memlane.toml").write_bytes(b"# mine\r\n[memory]\r\nenabled = false\r\n")
    Bank.init(tmp_path)
    expected = b'# mine\r\n[memory]\r\nstorage_strategy = "project"\r\nenabled = true\r\n'
    assert (tmp_path / "memlane.toml").read_bytes() == expected


@pytest.mark.parametrize(
    "text", ["[ memory ]\nenabled = false\n", "memory.enabled = false\n", "memory = {enabled = false}\n"]
)
def test_init_does_not_guess_at_a_style_it_cannot_edit(tmp_path: Path, text: str) -> None:
    write(tmp_path / "memlane.toml", text)
    with pytest.raises(ConfigError, match="cannot be set automatically"):
        Bank.init(tmp_path)
    assert (tmp_path / "memlane.toml").read_text() == text


@pytest.mark.parametrize("data", [b"# caf\xe9\n[memory]\nenabled = true\n", b"[memory\n"])
def test_init_of_a_broken_configuration_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "memlane.toml").write_bytes(data)
    with pytest.raises(ConfigError, match=r"memlane\.toml"):
        Bank.init(tmp_path)
    assert tree(tmp_path) == {"memlane.toml": data}


def test_no_bank_is_made_where_its_path_cannot_be_written_down(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    with pytest.raises(ConfigError, match="caf\ufffd has a name that is not UTF-8"):
        Bank.init(folder)
    assert tree(tmp_path) == {}


def test_a_bank_whose_path_cannot_be_written_down_says_so(tmp_path: Path) -> None:
    Bank.init(tmp_path).close()
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    for name in ("memlane.toml", ".memories"):
        (tmp_path / name).rename(odd / name)
    with pytest.raises(ConfigError, match="has a name that is not UTF-8"):
        Bank.open(odd)


def test_init_where_the_folder_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".memories").write_text("a file")
    with pytest.raises(StorageError):
        Bank.init(tmp_path)


TOPIC = "# Auth\n\n## 2025-01-01: Title\n**Context:** x\n**Problem:** y\n**Solution:** z\n---\n"
LAYER = "<!-- Last Updated: 2025-01-01 -->\n\n# Profile\n"


def test_init_adopts_the_stores_that_are_there(tmp_path: Path) -> None:
    write(tmp_path / "memory/auth/oauth2.md", TOPIC)
    write(tmp_path / "memory/index.md", "# Memory Index\n")
    write(tmp_path / "data/memory/vault.jsonl", "")
    write(tmp_path / "forge-plugin/memory/projects/api/project_profile.md", LAYER)
    write(tmp_path / "local-recall/memories/550e8400-e29b-41d4-a716-446655440000.md", "x")
    bank = Bank.init(tmp_path)
    assert {
        name: str(bank.config.lane_root(name).relative_to(tmp_path))
        for name in ("topics", "vault", "layers", "records")
    } == {
        "topics": "memory",
        "vault": "data/memory/vault.jsonl",
        "layers": "forge-plugin/memory",
        "records": "local-recall/memories",
    }
    assert [memory.id for memory in bank.list(lane="topics")] == ["topics:auth/oauth2/2025-01-01-title"]
    assert [memory.id for memory in bank.list(lane="layers")] == ["layers:shared-project/api/project_profile"]


def test_a_memory_folder_of_the_other_kind_is_recognised(tmp_path: Path) -> None:
    write(tmp_path / "memory/skills/review/api/project_overview.md", LAYER)
    assert adopt.stores(tmp_path) == {"layers": "memory"}


def test_a_memory_folder_full_of_code_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "memory/pool/alloc.py", "")
    write(tmp_path / "memory/pool/README.md", "")
    assert adopt.stores(tmp_path) == {}


def test_init_of_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    from memlane import InvalidInput

    with pytest.raises(InvalidInput):
        Bank.init(tmp_path / "gone")
