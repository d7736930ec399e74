// One memory, whole: what it says, where it came from, whether it still holds, what it was; and changing it.

import { get, post } from "../api.js";
import { done } from "../doing.js";
import { address, chip, counted, el, fill, line, problem, say, tree, when, words } from "../dom.js";
import { editor, isEdited } from "./editing.js";

export const title = "Memory";
const VERSIONS = 20; // that are listed at first
const MENDABLE = ["storage", "invalid_input"];
export const keys = { e: "edit", "Ctrl+Enter": "save what is edited" };

export async function show(page, { path, query, signal, live, go, press }) {
  const head = el("div");
  const body = el("div");
  const below = el("div", { class: "beside" });
  const rest = el("div", { class: "beside" });
  fill(page, head, el("div", { class: "columns" }, el("div", { class: "beside" }, body, below), rest));
  const state = { id: path, all: "", editing: query.get("edit") === "yes" || isEdited(path), shown: "" };

  const load = async (again = false) => {
    const memory = await get("memory", { id: path, all: state.all }, signal);
    const now = JSON.stringify(memory);
    if (!again && now === state.shown) return;
    state.shown = now;
    if (memory.id !== path) return go(address(memory.id) + location.search, { replace: true });
    document.title = `${memory.title ?? memory.id} · memlane`;
    if (memory.deleted && state.editing) return say("It was deleted meanwhile. What you wrote is still here.");
    if (memory.deleted) return fill(head, gone(memory, act)), [body, below, rest].forEach((each) => fill(each));
    fill(head, el("h1", {}, words(memory.title || memory.id)), notices(memory, act));
    fill(rest, facts(memory), tags(memory, act), sections.links.node);
    fill(below, sections.code.node, sections.versions.node);
    if (!state.editing) read(memory);
    else if (!body.hasChildNodes()) edit();
    for (const each of Object.values(sections)) each.load().catch((error) => signal.aborted || fill(each.node, problem(error)));
  };

  const read = (memory) => {
    state.editing = false;
    if (new URLSearchParams(location.search).has("edit")) history.replaceState(null, "", location.pathname);
    const more = () => ((state.all = "yes"), load(true).catch((error) => say(error.message)));
    fill(body, toolbar(memory, edit, act), text(memory, more));
  };
  const edit = () => {
    state.editing = true;
    history.replaceState(null, "", `${location.pathname}?edit=yes`);
    const left = async (said, answer) => {
      state.editing = false;
      await load(true).catch((error) => fill(head, problem(error)));
      if (said) done(said, answer, () => load(true));
      body.querySelector("button")?.focus();
    };
    const back = () => el("p", {}, el("button", { type: "button", onclick: () => left() }, "Back to reading"));
    editor(body, path, left).catch((error) => fill(body, problem(error), back()));
  };
  // A change that a button makes: it is said, with a way back, or why it was not made.
  const act = async (name, asked, said) => {
    try {
      const answer = await post(name, { id: path, ...asked });
      await load(true);
      done([said, ...(answer.remarks ?? [])].join(" · "), answer, () => load(true).catch(() => {}));
    } catch (error) {
      say([error.message, error.hint].filter(Boolean).join(" "));
    }
  };
  const sections = { code: code(path, signal, act), links: linked(path, signal), versions: versions(path, signal, act) };

  try {
    await load();
  } catch (error) {
    if (!MENDABLE.includes(error.code)) throw error;
    fill(head, problem(error)); // a damaged file opens, for it wants mending
    edit();
  }
  press({ e: () => state.editing || edit() });
  live(({ memories }) => {
    const edited = state.editing && memories.includes(path);
    if (edited) say("It was changed meanwhile. Nothing that you wrote is lost: saving says what to do.");
    return Promise.allSettled([edited || load(), sections.links.load()]);
  });
}

// -- what it says

function toolbar(memory, edit, act) {
  return el(
    "div",
    { class: "toolbar" },
    el("button", { type: "button", class: "main", onclick: edit }, "Edit"),
    el("button", { type: "button", class: "danger", onclick: () => act("delete", { expected: memory.version }, "Deleted") }, "Delete"),
  );
}

function text(memory, more) {
  return el(
    "article",
    { class: "card text", dir: "auto" },
    memory.body.length ? tree(memory.body) : el("p", { class: "muted" }, "It has no text."),
    memory.cut && el("p", { class: "cut" }, el("button", { type: "button", onclick: more }, `Show all ${memory.characters.toLocaleString()} characters`)),
  );
}

function gone(memory, act) {
  return el(
    "section",
    { class: "empty" },
    el("h1", {}, "This memory was deleted."),
    el("p", {}, el("code", {}, words(memory.id)), " ", when(memory.deleted, { relative: true })),
    el("p", {}, el("button", { type: "button", class: "main", onclick: () => act("restore", {}, "It is back") }, "Bring it back")),
  );
}

// -- what one should know before one believes it

function notices(memory, act) {
  const button = (label, name, said) => el("button", { type: "button", onclick: () => act(name, {}, said) }, label);
  const to = (id) => el("a", { href: address(id) }, words(id));
  const notice = (kind, what, ...steps) => el("div", { class: `notice ${kind}` }, el("p", {}, what), el("div", { class: "steps" }, steps));
  const why = memory.evidence && [": ", words(memory.evidence)];
  return [
    memory.held && notice("bad", words(memory.held), button("Keep it", "restore", "Kept"), button("Delete it again", "delete", "Deleted")),
    memory.suspicious.length > 0 && notice("bad", ["It reads like instructions to a model: it ", words(memory.suspicious.join(", and "))]),
    memory.superseded_by && notice("warn", ["Something newer took its place: ", to(memory.superseded_by)]),
    memory.expired && notice("warn", "It has expired: no answer shows it.", button("Keep it", "restore", "It does not expire any more")),
    memory.status === "archived"
      && notice("plain", "It is archived: only a search for archived ones shows it.", button("Take it out of the archive", "restore", "It is back")),
    memory.unconfirmed && notice("warn", ["Nobody has confirmed it", why, "."], button("It is right", "confirm", "Confirmed")),
    memory.origin
      && notice("warn", ["Somebody else wrote it: it ", words(memory.origin)], button("I have read it, let it count", "confirm", "It counts as yours now")),
  ];
}

// -- facts

const SHOWN_ELSEWHERE = new Set(["tags", "title", "expires", "created_at", "updated_at", "conflicts"]);

function facts(memory) {
  const said = (value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : String(value));
  const own = Object.entries(memory.fields).filter(([name, value]) => !SHOWN_ELSEWHERE.has(name) && value !== null && value !== "");
  const rows = [
    ["id", el("code", {}, words(memory.id))],
    ["kept in", el("a", { href: `/search?lane=${memory.lane}` }, memory.lane)],
    memory.type && ["type", el("a", { href: `/search?type=${encodeURIComponent(memory.type)}` }, words(memory.type))],
    ["from", source(memory)],
    ["made", when(memory.created_at)],
    memory.updated_at && ["changed", when(memory.updated_at, { relative: true })],
    memory.expires && ["expires", when(memory.expires)],
    ...["status", "scope", "project", "thread"].filter((name) => memory[name]).map((name) => [name, words(memory[name])]),
    memory.replaces && ["took the place of", memory.replaces.map((id) => el("div", {}, el("a", { href: address(id) }, words(id))))],
    ["file", el("span", { class: "path" }, words(memory.path))],
  ].filter(Boolean);
  const list = (pairs) => el("dl", { class: "pairs" }, pairs.map(([name, value]) => [el("dt", {}, words(name)), el("dd", {}, value)]));
  return el(
    "section",
    { class: "card" },
    el("h2", {}, "Facts"),
    list(rows),
    own.length > 0 && el("details", {}, el("summary", {}, counted(own.length, "more field")), list(own.map(([name, value]) => [name, words(said(value))]))),
  );
}

function source(memory) {
  if (memory.origin) return words(memory.origin);
  if (memory.owner) return "your own bank, read in every project";
  if (memory.evidence) return words(memory.evidence);
  return memory.users_word ? "your own word" : "written here, by an agent or a program";
}

function tags(memory, act) {
  const input = el("input", { type: "text", placeholder: "Add a tag", "aria-label": "Add a tag", maxlength: "100", autocomplete: "off" });
  const add = async (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (!name) return;
    await act("tag", { add: name }, `Tagged #${name}`);
    document.querySelector(".tags input")?.focus();
  };
  const take = (name) => act("tag", { remove: name }, `Not tagged #${name} any more`);
  return el(
    "section",
    { class: "card tags" },
    el("h2", {}, "Tags"),
    el("ul", { class: "chips" }, memory.tags.map((name) => el("li", { class: "chip" },
      el("a", { href: `/search?tag=${encodeURIComponent(name)}` }, "#", words(name)),
      el("button", { type: "button", "aria-label": `Take away the tag ${name}`, onclick: () => take(name) }, "×")))),
    el("form", { onsubmit: add }, input),
  );
}

// -- sections that are loaded after the rest, each by itself: a node, and how it is loaded

function section(ask, draw) {
  const node = el("section", { class: "card", hidden: true });
  let last = "";
  const load = async () => {
    const found = await ask();
    const now = JSON.stringify(found);
    if (now === last) return;
    last = now;
    const inside = draw(found);
    node.hidden = !inside;
    fill(node, inside);
  };
  return { node, load };
}

const VERDICTS = { fresh: "good", moved: "warn", drifted: "warn", orphaned: "bad" };
const MEANT = { fresh: "as it was", moved: "moved", drifted: "changed", orphaned: "gone" };

export function codeOf(verdict) {
  return verdict.findings.map((finding) => el(
    "div",
    { class: "finding" },
    el(
      "p",
      {},
      el("code", {}, words([finding.target, finding.symbol].filter(Boolean).join(": "))),
      " ",
      chip(MEANT[finding.verdict], { class: `chip ${VERDICTS[finding.verdict]}` }),
    ),
    finding.why && el("p", { class: "muted" }, words(finding.why)),
    finding.diff && diff(finding.diff.split("\n")),
  ));
}

function code(id, signal, act) {
  return section(() => get("fresh", { id }, signal), ({ verdict }) => verdict && [
    el("h2", {}, "The code it speaks of"),
    codeOf(verdict),
    verdict.verdict !== "fresh"
      && el("button", { type: "button", onclick: () => act("accept", {}, "It is right about the code as it is now") }, "It is right"),
  ]);
}

function linked(id, signal) {
  return section(() => get("links", { id }, signal), (found) => (found.in.length > 0 || found.out.length > 0) && [
    found.out.length > 0 && [el("h2", {}, "Links to"), el("ul", { class: "plain" }, found.out.map(target))],
    found.in.length > 0 && [el("h2", {}, "Linked from"), el("ul", { class: "plain" }, found.in.map((memory) => line(memory)))],
  ]);
}

function target(link) {
  const href = link.id ? address(link.id) : `/to/${encodeURIComponent(link.target)}`;
  return el("li", {}, el("a", { href, "data-step": "" }, words(link.target)), !link.id && el("span", { class: "muted" }, " no memory"));
}

function versions(id, signal, act) {
  return section(() => get("versions", { id }, signal), ({ versions: found }) => found.length > 0 && [
    el("h2", {}, "Versions"),
    versionList(id, found, act),
  ]);
}

function versionList(id, found, act, shown = VERSIONS) {
  const rows = found.slice(0, shown).map((each, at) => version(id, each, found[at + 1], at === 0, act));
  const list = el("ol", { class: "plain versions" }, rows);
  const left = found.length - rows.length;
  const older = el("button", { type: "button", onclick: () => list.replaceWith(versionList(id, found, act, 10 * shown)) }, `Show ${left.toLocaleString()} older`);
  if (left > 0) list.append(el("li", {}, older));
  return list;
}

function version(id, each, before, newest, act) {
  const inside = el("div");
  let shown = "";
  const compare = async (what) => {
    if (shown === what) return (shown = ""), fill(inside);
    shown = what;
    const changed = { version: each.version, ...(before && { before: before.version }) };
    try {
      const { lines } = await get("difference", { id, ...(what === "changed" ? changed : { version: "", before: each.version }) });
      const nothing = lines === null ? "It is too long to be compared here." : "There is no difference.";
      fill(inside, lines?.length ? diff(lines) : el("p", { class: "muted" }, nothing));
    } catch (error) {
      fill(inside, problem(error));
    }
  };
  const button = (label, onclick, more = {}) => el("button", { type: "button", class: "small", onclick, ...more }, label);
  return el(
    "li",
    {},
    el(
      "p",
      { class: "facts" },
      el("code", {}, words(each.version.slice(0, 12))),
      when(each.at, { relative: true }),
      el("span", {}, words([each.author, each.what].filter(Boolean).join(": "))),
    ),
    el(
      "div",
      { class: "steps" },
      button("What it changed", () => compare("changed"), { "data-step": "" }),
      !newest && button("What changed since", () => compare("since")),
      !newest && button("Bring this one back", () => act("restore", { version: each.version }, "It says again what it said then")),
    ),
    inside,
  );
}

// A diff, line by line.
export function diff(lines) {
  const kind = { "+": "added", "-": "removed", "@": "place" };
  const spans = lines.map((each) => el("span", { class: kind[each[0]] ?? "same" }, words(each), "\n"));
  return el("pre", { class: "diff", tabindex: "0", role: "region", "aria-label": "What changed" }, spans);
}
