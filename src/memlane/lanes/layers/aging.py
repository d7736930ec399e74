"""How memories age (seed 004): the Last Updated line, staleness, size limits, three pruning rules, quality checks.

Pure functions from text to data. Does no I/O: `memlane.lanes.layers.store` writes what they return. Fenced code is
opaque: a `## Review` inside it is not a heading.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any, NamedTuple

from memlane.core.dates import moment
from memlane.core.markdown import heading, lines_with_code
from memlane.core.patterns import lazily
from memlane.core.text import first_line, newline_of

FRESH_DAYS = 30
AGING_DAYS = 90
KEEP_REVIEWS = 10
KEEP_SESSIONS = 15
RESOLVED_DAYS = 30
VERIFY_DAYS = 90
MAX_LINES = 500
LIMITS = {  # file type: (lines, what to do above)
    "project_overview": (200, "Move detailed sections to separate files"),
    "review_history": (300, "Archive older entries"),
}
VERIFY = "[VERIFY STATUS]"
ARCHIVE = "_archive"
EVERY = 5  # invocations between two requests to verify

# -- the Last Updated line

_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_LINE = rf"<!-- Last Updated: ({_DATE}) -->[ \t]*(?:\r?\n|\Z)(?:\r?\n)?"  # and one empty line
_STAMP = lazily(rf"\ufeff?{_LINE}")
_STAMPS = lazily(rf"\A(?:\ufeff?\s*{_LINE})+")


def updated_on(text: str) -> date | None:
    """The date on the first line; None when there is no such line, or no such day."""
    match = _STAMP.match(text)
    return _day(match[1]) if match else None


def body(text: str) -> str:
    """What is remembered: the text without its Last Updated line and the one empty line after it."""
    match = _STAMP.match(text)
    return text[match.end() :] if match else text.removeprefix("\ufeff")


def page(content: str, today: date, old: str = "") -> str:
    """The file for a content, with the byte order mark of the `old` file.

    Last Updated lines that the content brings along are replaced, never doubled.
    """
    content = _STAMPS.sub("", content)
    mark = "\ufeff" * old.startswith("\ufeff")
    return f"{mark}<!-- Last Updated: {today} -->{newline_of(content) * 2}{content}"


def stamped(text: str, today: date) -> str:
    """A file's text with today's date on its first line; every other byte stays."""
    match = _STAMP.match(text)
    if match:
        return text[: match.start(1)] + str(today) + text[match.end(1) :]
    return page(text.removeprefix("\ufeff"), today, text)


def joined(text: str, content: str, *, paragraph: bool = False) -> str:
    """The text with the content on new lines at its end, in the text's own line ends; perhaps after an empty line."""
    newline = newline_of(text)
    content = _STAMPS.sub("", content)
    if newline != "\n":
        content = content.replace("\r\n", "\n").replace("\n", newline)
    if text and not text.endswith("\n"):
        text += newline
    if text and paragraph and not text.endswith(("\n\n", "\n\r\n")):
        text += newline
    return text + content


# -- staleness and size


def days_since(updated: date | None, today: date) -> int | None:
    return None if updated is None else (today - updated).days


def staleness(updated: date | None, today: date) -> str:
    """0-30 days are fresh, 31-90 aging, more or no date at all stale. A date in the future is fresh."""
    days = days_since(updated, today)
    if days is None or days > AGING_DAYS:
        return "stale"
    return "fresh" if days <= FRESH_DAYS else "aging"


def line_count(text: str) -> int:
    return len(text.splitlines())


def size_warning(file_type: str, lines: int) -> str | None:
    """What to do about a file that has become too long. Archives have no limit."""
    if file_type.endswith(ARCHIVE):
        return None
    limits = [LIMITS[file_type]] if file_type in LIMITS else []
    limits.append((MAX_LINES, "Split into focused sub-files"))
    return " ".join(f"{lines} lines, over {limit}: {advice}." for limit, advice in limits if lines > limit) or None


# -- sections


class Section(NamedTuple):
    """A heading and what follows it; level 0 is the text before the first one."""

    level: int
    title: str
    text: str


def sections(text: str, depth: int) -> list[Section]:
    """Split at headings of level 1 to depth. The texts together are the text again."""
    found: list[tuple[int, str, list[str]]] = [(0, "", [])]
    for line, in_code in lines_with_code(text):
        head = None if in_code else heading(line)
        if head and head[0] <= depth:
            found.append((*head, [line]))
        else:
            found[-1][2].append(line)
    return [Section(level, title, "".join(lines)) for level, title, lines in found if lines]


def with_archived(archive: str, old: Sequence[str]) -> str:
    """An archive with these sections at its end, less those that it has already.

    A writer killed between archive and main file leaves a section in both; it is not archived again. Of sections
    that are alike, only as many are left out as the archive has.
    """
    have = Counter(section.text.strip() for section in sections(archive, 2))
    newline = newline_of(archive)
    for text in old:
        if have[text.strip()]:
            have[text.strip()] -= 1
        else:
            archive += newline * (archive != "" and not archive.endswith("\n")) + text
    return archive


# -- pruning


class Action(NamedTuple):
    action: str  # archived, removed or flagged
    reason: str


class Pruned(NamedTuple):
    """What a rule makes of a text. `archived` goes into the archive, oldest first; `removed` is nowhere else."""

    text: str
    actions: tuple[Action, ...] = ()
    archived: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def prune(file_type: str, text: str, today: date) -> Pruned:
    """Apply the rule of a file type; a type without one keeps everything."""
    rule = RULES.get(file_type)
    return rule(text, today) if rule else Pruned(text)


def pruned_page(file_type: str, text: str, today: date) -> str:
    """A file's text once it was pruned. Only a review history gets a new date: nobody has looked at the others."""
    return stamped(text, today) if file_type == "review_history" else text


_NUMBER = r"(?:\s*#?\s*([0-9]{1,9})(?![0-9]|-[0-9]))?"
_REVIEW = lazily(rf"Review\b{_NUMBER}")
_SESSION = lazily(rf"(?:Test )?Session\b{_NUMBER}")
_WHEN = lazily(rf"{_DATE}(?:[ T][0-9]{{2}}:[0-9]{{2}})?")


def _reviews(text: str, today: date) -> Pruned:
    rest, old = _split(text, _REVIEW, KEEP_REVIEWS)
    reason = f"{_counted(old, 'review')} beyond the {KEEP_REVIEWS} most recent moved to review_history_archive"
    return _archived(_text(rest), old, reason) if old else Pruned(text)


def _sessions(text: str, today: date) -> Pruned:
    rest, old = _split(text, _SESSION, KEEP_SESSIONS)
    if not old:
        return Pruned(text)
    newline = newline_of(text)
    summaries = [part for part in rest if part[:2] == (2, SUMMARY)]
    kept = _text(part for part in rest if part[:2] != (2, SUMMARY))
    while kept and not kept.endswith(newline * 2):
        kept += newline
    reason = (
        f"{_counted(old, 'session')} beyond the {KEEP_SESSIONS} most recent summarised, "
        "in full in test_results_history_archive"
    )
    return _archived(kept + _summary(summaries, old, newline), old, reason)


def _split(text: str, pattern: re.Pattern[str], keep: int) -> tuple[list[Section], list[Section]]:
    """The sections of a text without the entries beyond the newest `keep`, and those entries, oldest first.

    Newest is by date, then number, then place: append adds at the end. An entry without a date or number is as
    old as the next one that has it, and at the end the newest, so that files written newest first keep their order.
    """
    parts = sections(text, 2)
    when, number = "9999", 10**9
    ages = []
    for place, part in reversed(list(enumerate(parts))):
        if part.level != 2 or not (match := pattern.match(part.title)):
            continue
        if dated := _WHEN.search(part.title):
            when = dated[0].replace("T", " ")
        if match[1]:
            number = int(match[1])
        ages.append((when, number, place))
    old = [place for _, _, place in sorted(ages)[: max(len(ages) - keep, 0)]]
    gone = set(old)
    return [part for place, part in enumerate(parts) if place not in gone], [parts[place] for place in old]


def _archived(text: str, old: Sequence[Section], reason: str) -> Pruned:
    return Pruned(text, (Action("archived", reason),), tuple(part.text for part in old))


def _text(parts: Iterable[Section]) -> str:
    return "".join(part.text for part in parts)


def _counted(items: Sequence[Section], noun: str) -> str:
    return f"{len(items)} {noun}{'s' * (len(items) != 1)}"


SUMMARY = "Historical Summary"
_TOTAL = lazily(r"^\*\*Sessions summarised\*\*: ([0-9]{1,9})[ \t]*\r?\n?(?:\r?\n)?", re.MULTILINE)
_RESULT = lazily(r"(?i)pass|fail|result|error|coverage")


def _summary(present: Sequence[Section], folded: Sequence[Section], newline: str) -> str:
    """The summary section, with a bullet more for each folded session; what people wrote into it stays."""
    notes = "".join(part.text.partition("\n")[2] for part in present)
    total = sum(int(count) for count in _TOTAL.findall(notes)) + len(folded)
    notes = _TOTAL.sub("", notes).strip("\r\n")
    bullets = [f"- {section.title}{_result_of(section.text)}" for section in folded]
    lines = [f"## {SUMMARY}", "", f"**Sessions summarised**: {total}", "", *([notes] if notes else []), *bullets, ""]
    return newline.join(lines)


def _result_of(text: str) -> str:
    lines = [line for line, in_code in lines_with_code(text) if not in_code and line.strip() and not heading(line)]
    line = first_line(next((line for line in lines if _RESULT.search(line)), lines[0] if lines else ""))
    return f": {line}" if line else ""


_STATUS = lazily(r"\s*(?:[-*+]\s+)?\*\*Status(?:\*\*\s*:|:\s*\*\*)(.*)", re.IGNORECASE)
_RESOLVED_LINE = lazily(r"\s*(?:[-*+]\s+)?\*\*(?:Resolved|Fixed)(?:\*\*\s*:|:\s*\*\*)(.*)", re.IGNORECASE)
_RESOLVED = lazily(r"(?:resolved|fixed)\b", re.IGNORECASE)
_IN_PROGRESS = lazily(r"\bin[ -]progress\b", re.IGNORECASE)


def _issues(text: str, today: date) -> Pruned:
    kept: list[str] = []
    removed: list[Section] = []
    flagged: list[str] = []
    for part in sections(text, 3):
        verdict = _verdict(part.text, today) if part.level == 3 else "keep"
        if verdict == "remove":
            removed.append(part)
            continue
        if verdict == "verify" and VERIFY not in part.title:
            flagged.append(part.title)
            head, newline, rest = part.text.partition("\n")
            bare = head.rstrip("\r")
            part = part._replace(text=f"{bare} {VERIFY}{head[len(bare) :]}{newline}{rest}")
        kept.append(part.text)
    actions = []
    if removed:
        names = "; ".join(part.title for part in removed)
        actions.append(Action("removed", f"resolved {RESOLVED_DAYS} or more days ago: {names}"))
    if flagged:
        actions.append(Action("flagged", f"no status update for {VERIFY_DAYS} or more days: {'; '.join(flagged)}"))
    return Pruned("".join(kept), tuple(actions), removed=tuple(part.text for part in removed))


def _verdict(issue: str, today: date) -> str:
    """keep, verify or remove. An issue with several status lines is resolved when all of them say so."""
    lines = [line for line, in_code in lines_with_code(issue) if not in_code]
    statuses = [(place, match[1]) for place, line in enumerate(lines) if (match := _STATUS.match(line))]
    words = [_status_word(value) for _, value in statuses]
    if not statuses or "in progress" in words:
        return "keep"
    if all(word == "resolved" for word in words):
        dates = [_resolved_on(lines, place, value) for place, value in statuses]
        if all(day and (today - day).days >= RESOLVED_DAYS for day in dates):
            return "remove"
        return "keep"
    latest = max((day for _, value in statuses for day in _days(value)), default=None)
    return "verify" if latest and (today - latest).days >= VERIFY_DAYS else "keep"


def _status_word(value: str) -> str:
    """resolved, in progress or open. Words count; an emoji alone speaks for itself."""
    words = re.sub(r"^[\W_]+", "", re.sub(_DATE, "", value))
    if _IN_PROGRESS.search(value) or (not words and ("\u26a0" in value or "\U0001f504" in value)):
        return "in progress"
    return "resolved" if _RESOLVED.match(words) or (not words and "\u2705" in value) else "open"


def _resolved_on(lines: Sequence[str], place: int, value: str) -> date | None:
    """The date on the status line, else on a `**Resolved**:` line, else in the next three lines."""
    labelled = [match[1] for line in lines if (match := _RESOLVED_LINE.match(line))]
    for near in (value, *labelled, *lines[place + 1 : place + 4]):
        if days := _days(near):
            return days[0]
    return None


def _days(text: str) -> list[date]:
    return [day for found in re.findall(rf"(?<![0-9]){_DATE}(?![0-9])", text) if (day := _day(found))]


def _day(text: str) -> date | None:
    when = moment(text)
    return when.date() if when else None


RULES: dict[str, Callable[[str, date], Pruned]] = {
    "review_history": _reviews,
    "known_issues": _issues,
    "test_results_history": _sessions,
}


# -- quality

_VERSION = r"v?[0-9]+(?:\.[0-9x*]+)*"
_LANGUAGES = (
    r"python|javascript|typescript|java|kotlin|c\#|c\+\+|f\#|go|golang|rust|ruby|php|swift|scala|elixir|dart|perl|lua|"
    r"haskell|clojure"
)
_FRAMEWORKS = (
    r"fastapi|django|flask|starlette|spring(?: boot)?|asp\.net(?: core)?|express|nest(?:js)?|react|angular|vue|svelte|"
    r"rails|laravel|symfony|next(?:\.js)?|nuxt|gin|axum|actix(?:-web)?|phoenix|ktor|quarkus|blazor|qt|flutter"
)
_ARCHITECTURES = "layered|hexagonal|onion|monolith(?:ic)?|micro-?services?|mvc|mvvm|cqrs|event-driven|serverless"


class Topic(NamedTuple):
    """What a project overview must say: `said` after a label or in a section that it heads, or in a known word."""

    name: str
    label: re.Pattern[str]
    word: re.Pattern[str]
    said: re.Pattern[str]


def _topic(name: str, label: str, word: str, versioned: bool = False) -> Topic:
    word = rf"(?<![\w.])(?:{word})[ :=~><^`*(v-]{{1,8}}{_VERSION}" if versioned else rf"\b(?:{word})\b"
    said = re.compile(_VERSION if versioned else r"\w")
    return Topic(name, re.compile(rf"\b(?:{label})\b", re.IGNORECASE), re.compile(word, re.IGNORECASE), said)


_TOPICS = (
    _topic("language and version", "languages?", _LANGUAGES, versioned=True),
    _topic("framework and version", "frameworks?", _FRAMEWORKS, versioned=True),
    _topic("architecture pattern", "architectur(?:e|al)", _ARCHITECTURES),
    _topic("key conventions", "conventions?|naming|(?:code|coding) style", "snake_case|camelCase|PascalCase"),
    _topic("testing approach", "testing|tests?", "pytest|unittest|jest|vitest|xunit|nunit|junit|rspec|playwright"),
)
_SPECIFIC = lazily(r"`|\[\[|https?://|\w/\w|\w\.[a-z]{1,5}\b|(?<![\w+-])v?[0-9]|\w\(\)|[a-z][A-Z]|[A-Za-z]_[A-Za-z]")
_VAGUE = lazily(r"(?i)\b(?:uses custom|has some|there are|various|multiple|several|certain)\b")
_ABSOLUTE = lazily(r"(?:/home/|/Users/|\b[A-Za-z]:\\)\w")
_MAX_UNSPECIFIC = 0.3
_MAX_VAGUE_LINES = 3
_MAX_CODE_LINES = 20


def quality(file_type: str, text: str, today: date, invocations: int, history: Sequence[int]) -> dict[str, Any]:
    """The checks of quality_guidance.md: {checks, details, suggestions}."""
    content = body(text)
    lines = list(lines_with_code(content))
    claims = [line for line, in_code in lines if not in_code and _is_claim(line)]
    unspecific = sum(not _SPECIFIC.search(line) for line in claims)
    specific = not claims or unspecific / len(claims) <= _MAX_UNSPECIFIC
    if file_type == "project_overview":
        parts = sections(content, 6)
        missing = [topic.name for topic in _TOPICS if not _covered(topic, parts)]
        score = round(1 - len(missing) / len(_TOPICS), 2)
    else:
        missing, score = ([], 1.0) if claims else (["content"], 0.0)
    growth = growth_rate(history)
    count = line_count(text)
    age = staleness(updated_on(text), today)
    warning = size_warning(file_type, count)
    advice = {
        f"Name files, lines or functions: {unspecific} of {len(claims)} claims name none.": not specific,
        "Replace vague words (various, several, there are …) by what exactly is meant.": (
            sum(bool(_VAGUE.search(line)) for line in claims) > _MAX_VAGUE_LINES
        ),
        "Use paths relative to the repository, not absolute ones.": any(map(_ABSOLUTE.search, claims)),
        "Store where the code is, not the code itself.": sum(in_code for _, in_code in lines) > _MAX_CODE_LINES,
        f"It has not grown in {EVERY} invocations: look at other parts of the project.": growth == "stagnant",
        "It is stale: verify it against the project, then update it.": age == "stale",
        "Spot-check a file path, a convention and a known issue against the project.": due(invocations),
        "It has fewer than 10 lines: add what was learned.": count < 10 and not file_type.endswith(ARCHIVE),
    }
    add = "Investigate and add" if invocations >= 3 else "Add"
    return {
        "checks": {"completeness": not missing, "specificity": specific, "growthRate": growth},
        "details": {
            "completeness": {"score": score, "missing": missing},
            "specificity": {"claims": len(claims), "unspecific": unspecific},
            "staleness": age,
            "lineCount": count,
            "invocations": invocations,
            "warnings": [warning] if warning else [],
        },
        "suggestions": [
            *(f"{add} the {topic}." for topic in missing),
            *(suggestion for suggestion, applies in advice.items() if applies),
        ],
    }


def due(invocations: int) -> bool:
    """Whether it is time to verify: every fifth invocation."""
    return invocations > 0 and invocations % EVERY == 0


def growth_rate(history: Sequence[int]) -> str:
    """healthy, stagnant or unknown, from the line counts at the latest invocations."""
    recent = history[-EVERY:]
    if len(recent) < EVERY:
        return "unknown"
    return "healthy" if max(recent) > recent[0] else "stagnant"


def _is_claim(line: str) -> bool:
    """A line that says something: not a heading, a rule, a table's border or a bare label such as `Files:`."""
    bare = line.strip().strip("*_")
    return any(map(str.isalpha, bare)) and not heading(line) and not bare.endswith(":") and not bare.startswith("<!--")


def _covered(topic: Topic, parts: Sequence[Section]) -> bool:
    open_level = 0  # of the heading that names the topic, while its sub-sections last
    for part in parts:
        _, _, under = part.text.partition("\n") if part.level else ("", "", part.text)
        if part.level <= open_level or not open_level:
            open_level = part.level if topic.label.search(part.title) else 0
        if open_level and topic.said.search(under):
            return True
        for line in under.splitlines():
            label = topic.label.search(line)
            if (label and topic.said.search(line, label.end())) or topic.word.search(line):
                return True
    return False
