"""The settings: every key of the configuration, what it may say, its default, and what it is for."""

from __future__ import annotations

from typing import Any

from memlane.core.values import dataclass
from memlane.lanes import NAMES


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of the configuration. `kind` is a type, or a tuple of the allowed words; `words` are all that a list may
    have; `what` says what it sets.
    """

    key: str
    kind: Any
    default: Any
    least: float | None = None
    most: float | None = None
    what: str = ""
    words: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """The allowed values, for a message."""
        if isinstance(self.kind, tuple):
            return " or ".join(f'"{word}"' for word in self.kind)
        if self.words:
            return f"a list of {', '.join(self.words)}"
        words = {bool: "true or false", int: "a whole number", float: "a number", str: "text", list: "a list of text"}
        bounds = [f"at least {self.least:g}"] if self.least is not None else []
        bounds += [f"at most {self.most:g}"] if self.most is not None else []
        return ", ".join([words[self.kind], *bounds])


TOOLSETS = ("vault", "topics", "layers", "records", "knowledge-graph", "keys")
SETTINGS = (
    Setting("memory.enabled", bool, False, what="whether there is a memory here"),
    Setting("memory.storage_strategy", ("project", "user"), "project", what=".memories/ here, or the user's folder"),
    Setting(
        "memory.worktrees", ("auto", "shared", "own"), "auto", what="a linked worktree's bank; auto: its own if in git"
    ),
    Setting("memory.user_bank", bool, True, what="whether your own bank is read together with the project's"),
    Setting(
        "memory.sync",
        ("asked", "on-write"),
        "asked",
        what="on-write: a server answers a write when the remotes have it",
    ),
    Setting("memory.recency_boost_days", int, 7, least=0, what="how long a memory counts as recent"),
    Setting("memory.recency_boost_factor", float, 1.2, least=1.0, what="what a recent memory's score is multiplied by"),
    Setting("memory_configuration.external_path", str, "", what="keep topics in this folder, and in it .memories"),
    *(Setting(f"lanes.{name}", str, "", what=f"where the {name} are, when not in the bank's folder") for name in NAMES),
    Setting("directory_structure.memory_path", str, "", what="as lanes.topics, where there is no external_path"),
    Setting("vault.max_active", int, 100, least=1, what="how many active records the vault takes"),
    Setting("vault.token_overlap_threshold", float, 0.60, least=0.0, most=1.0, what="word overlap of a duplicate"),
    Setting("vault.scopes", list, [], what="the scopes a vault record may have; [] takes any name"),
    Setting(
        "topics.security",
        ("auto", "strict", "smart"),
        "auto",
        what="whether words such as 'password' are refused, or only secrets; auto: words in a store of its own place",
    ),
    Setting("layers.prune_timing", ("after_append", "before_append"), "after_append", what="when append prunes"),
    Setting("gate.secrets", ("refuse", "redact", "off"), "refuse", what="what happens to secrets and personal data"),
    Setting("gate.characters", ("strip", "refuse", "keep"), "strip", what="what happens to invisible characters"),
    Setting("gate.email", bool, False, what="whether e-mail addresses count as personal data"),
    Setting("gate.phone", bool, False, what="whether telephone numbers count as personal data"),
    Setting("search.encoder", str, "static", what="static, none, onnx:FOLDER, fastembed or fastembed:MODEL"),
    Setting("mcp.toolsets", list, [], words=TOOLSETS, what="further tools of the MCP server"),
    Setting("mcp.rules", bool, False, what="whether rules that agents store by tools count as your own words"),
    Setting("mcp.rate", int, 1200, least=0, what="requests a minute that one token may make; 0 is any number"),
    Setting("mcp.sessions", int, 32, least=1, most=256, what="sessions that one token may have open at once"),
    Setting("mcp.auth.issuer", str, "", what="whose signed tokens (JWT) the server takes, as they name it"),
    Setting("mcp.auth.audience", str, "", what="whom these tokens must be for; the server's own address if empty"),
    Setting("mcp.auth.jwks_uri", str, "", what="where the issuer publishes its keys: https, or this machine"),
    Setting("capture.keep_days", int, 0, least=0, what="archive records older than this; 0 keeps them all"),
    Setting("capture.keep_count", int, 0, least=0, what="archive all but the newest so many records; 0 keeps them all"),
    Setting("profile.enabled", bool, True, what="whether prompts get memory by themselves"),
    Setting("profile.scopes", list, [], what="the scopes that prompt blocks show; [] shows all"),
    Setting("profile.max_items", int, 20, least=0, what="how many memories a prompt block shows"),
    Setting("profile.similarity_threshold", float, 0.70, least=0.0, most=1.0, what="sequence ratio of a duplicate"),
    Setting("hook.enabled", bool, True, what="whether hooks do anything in this project"),
    Setting("hook.capture", bool, True, what="whether hooks keep what the assistant said as records"),
    Setting(
        "hook.distil",
        ("rules", "agent", "both", "off"),
        "rules",
        what="who picks what to remember of a session: rules, or the agent, which is asked once; both; or nobody",
    ),
    Setting("hook.recent", int, 5, least=0, what="how many memories a session starts with besides those it must have"),
    Setting("hook.records", bool, False, what="whether they may be what the assistant said in earlier sessions"),
    Setting("hook.notice", bool, True, what="whether the user is told how much memory a session starts with"),
    Setting("hook.log", bool, True, what="whether the log of sessions has words: what was given, how prompts begin"),
    Setting("hook.session_budget", int, 1500, least=0, what="tokens of memory that a session starts with, at most"),
    Setting("hook.prompt_budget", int, 800, least=0, what="tokens of memory that a prompt is given, at most"),
    Setting("hook.deadline", float, 2.0, least=0.1, most=60.0, what="seconds after which a hook gives up"),
    Setting("hook.resident", bool, True, what="whether a running server has a process that answers hooks sooner"),
    Setting("journal.enabled", bool, True, what="whether changes are recorded, so that they can be taken back"),
    Setting("journal.max_mb", int, 256, least=1, what="megabytes of earlier versions that are kept, at most"),
    Setting("journal.days", int, 365, least=0, what="days that earlier versions are kept; 0 keeps them"),
    Setting("profile.file", str, "", what="a YAML profile whose `memory` key says these four instead"),
)
