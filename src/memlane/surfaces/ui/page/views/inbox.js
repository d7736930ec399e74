// What waits for the user's word, one by one: a candidate, its evidence beside it, and a key for each decision.

import { get, post } from "../api.js";
import { badge } from "../app.js";
import { done } from "../doing.js";
import { address, chip, counted, el, empty, fill, say, tree, when, words } from "../dom.js";

export const title = "Inbox";
export const keys = {
  j: "next", ArrowUp: "previous", k: "keep", e: "edit", r: "make it a rule", m: "merge", t: "take its place", x: "reject",
};
export const count = async () => (await get("inbox-count")).count;

const DECISIONS = [
  ["keep", "k", "Keep", "Kept", () => true],
  ["edit", "e", "Edit", "Saved and kept", () => true],
  ["rule", "r", "Make it a rule", "It is a rule now", ({ rule, lane }) => !rule && lane === "notes"],
  ["replace", "t", "Take its place", "It took the place of the older one", ({ old }) => old],
  ["merge", "m", "Merge", "Added to the end of the other one", ({ like }) => like],
  ["reject", "x", "Reject", "Rejected; it will not come back", () => true],
];
const SPEAKERS = { user: "You", answer: "You, asked", assistant: "The agent", summary: "A summary of the session", command: "A command" };
const drafts = new Map(); // what was typed and not saved, by id: it is there when one comes back

const place = (id) => address(id).replace("/memory/", "/inbox/");

window.addEventListener("beforeunload", (event) => drafts.size && event.preventDefault());

export async function show(page, { path, signal, live, press }) {
  const state = { items: [], count: 0, at: 0, chosen: null, editing: false };
  let turn = Promise.resolve();
  const heading = el("h1", {});
  const queue = el("ol", { class: "queue", "aria-label": "Waiting" });
  const desk = el("article", { class: "candidate" });
  const body = el("div", { class: "desk" }, desk, queue);

  const list = async () => {
    const found = await get("inbox", {}, signal);
    Object.assign(state, found);
    badge("inbox", found.count);
    fill(heading, "Inbox ", el("small", { class: "muted" }, found.count ? `${counted(found.count, "memory waits", "memories wait")} for your word` : ""));
  };

  // Shows the candidate of this id, or the one at its old place when it is gone.
  const draw = async (id) => {
    const { items } = state;
    if (!items.length) {
      state.chosen = null;
      return fill(page, heading, nothing());
    }
    const known = items.findIndex((item) => item.id === id);
    state.at = known >= 0 ? known : Math.min(state.at, items.length - 1);
    const before = JSON.stringify(state.chosen);
    const found = await get("candidate", { id: items[state.at].id }, signal);
    if (state.editing && found.id === state.chosen?.id) return;
    state.chosen = found;
    const more = state.count - items.length;
    fill(queue, items.map((item, at) => entry(item, at === state.at)), more > 0 && el("li", { class: "muted" }, `and ${more.toLocaleString()} more`));
    if (JSON.stringify(state.chosen) !== before) {
      state.editing = drafts.has(state.chosen.id);
      fill(desk, sheet(state, act, edit));
    }
    if (body.parentNode !== page) fill(page, heading, body);
    queue.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  };

  const choose = async (id) => {
    history.replaceState(null, "", id ? place(id) : "/inbox");
    await draw(id);
    if (document.activeElement === document.body) desk.querySelector("h2")?.focus({ preventScroll: true });
  };
  const step = (by) => () =>
    once(async () => {
      const to = state.items[state.at + by];
      if (to) await choose(to.id);
    });
  // One thing after the other, so that no key is lost while the page looks at what has changed.
  const once = (work) => (turn = turn.then(() => signal.aborted || work()).catch((error) => signal.aborted || refused(error)).catch(() => {}));
  const refresh = () =>
    once(async () => {
      await list();
      if (!state.editing) await draw(state.chosen?.id);
    });
  const refused = async (error) => {
    say(error.hint ? `${error.message} ${error.hint}` : error.message);
    if (!["conflict", "not_found"].includes(error.code)) return;
    await list();
    if (!state.editing) return draw(state.chosen?.id);
    const now = await get("candidate", { id: state.chosen.id }, signal).catch(() => null);
    if (!now) return fill(desk.querySelector(".now"), el("p", {}, "It is gone. What you typed stays here: copy it, or cancel."));
    state.chosen.version = now.version;
    fill(
      desk.querySelector(".now"),
      el("h3", {}, "What it says now"),
      el("div", { class: "text card", dir: "auto" }, tree(now.body)),
      el("p", { class: "muted" }, "Save again to put your text in its place."),
    );
  };
  // A key is meant for what was shown when it was pressed: pressed twice, it does not decide on two.
  const act = (what) => {
    const shown = state.chosen;
    once(async () => {
      if (!shown || state.chosen?.id !== shown.id) return;
      const { id, version, rule, like } = shown;
      const [, , , said, fits] = DECISIONS.find(([name]) => name === what);
      if (!fits(shown)) return say(what === "merge" ? "Nothing is much like it." : "That cannot be done with this one.");
      const text = what === "edit" ? desk.querySelector("textarea").value : undefined;
      const answer = await post("decide", { id, version, what, text, into: what === "merge" ? like.id : undefined });
      drafts.delete(id);
      state.editing = false;
      const back = () => once(() => list().then(() => choose(id)));
      if (answer.changes.length || !rule) done(`${said}.`, answer, back);
      else say("It counts as your word from now on.", () => wait(id).then(back));
      const next = state.items[state.at + 1] ?? state.items[state.at - 1];
      await list();
      await choose(next?.id);
    });
  };
  const edit = (on) => {
    if (!state.chosen || state.editing === on) return;
    state.editing = on;
    if (!on) drafts.delete(state.chosen.id);
    fill(desk, sheet(state, act, edit));
    desk.querySelector(on ? "textarea" : "h2").focus();
  };

  press({
    j: step(1), ArrowDown: step(1), ArrowUp: step(-1),
    e: () => edit(true),
    ...Object.fromEntries(DECISIONS.filter(([what]) => what !== "edit").map(([what, key]) => [key, () => state.editing || act(what)])),
  });
  await list();
  await draw(path);
  if (path && state.chosen && state.chosen.id !== path) say("That one is decided. This is the next.");
  live(({ memories }) => memories.length && refresh());
}

// That a rule was kept is in no journal: it is taken back in its own way.
const wait = (id) => post("unreview", { id }).then(() => say("It waits again."), (error) => say(error.message));

const nothing = () =>
  empty(
    "Nothing waits for your word.",
    "What is worth remembering of a session comes here when the session ends, and you decide what stays.",
    ["To learn from the sessions that you have had already: ", el("code", {}, "memlane backfill")],
  );

function entry(item, current) {
  return el(
    "li",
    {},
    el("a", { href: place(item.id), class: "title", "aria-current": current && "true" }, words(item.passage || item.title)),
    el("p", { class: "facts" }, signs(item), when(item.at, { relative: true })),
  );
}

const signs = (item) => [
  item.rule ? chip("a rule: is it yours?", { class: "chip warn" }) : item.kind && chip(item.kind),
  item.replaces && chip("would replace", { class: "chip warn" }),
  item.suspicious.length > 0 && chip("reads like instructions", { class: "chip bad" }),
];

function sheet({ chosen, editing }, act, edit) {
  return [
    el("h2", { class: "unseen", tabindex: "-1" }, words(chosen.title || chosen.id)),
    el(
      "p",
      { class: "facts" },
      signs(chosen),
      chosen.confidence > 0 && chip(`${Math.round(chosen.confidence * 100)} % sure`),
      el("a", { href: address(chosen.id), title: chosen.id }, "Open its page"),
    ),
    chosen.suspicious.length > 0 && el("p", { class: "note bad" }, "Careful: ", words(chosen.suspicious.join("; ")), "."),
    chosen.code && el("p", { class: "note warn" }, words(chosen.code)),
    editing ? editor(chosen, act, edit) : [el("div", { class: "text said", dir: "auto" }, tree(chosen.body)), buttons(chosen, act, edit)],
    chosen.rule && whose(chosen),
    chosen.old && beside(chosen),
    said(chosen),
    chosen.like && chosen.like.id !== chosen.old?.id && alike(chosen),
  ];
}

function buttons(chosen, act, edit) {
  const made = DECISIONS.filter(([, , , , fits]) => fits(chosen)).map(([what, key, label]) =>
    el(
      "button",
      { type: "button", class: { keep: "main", reject: "danger" }[what], "aria-keyshortcuts": key, onclick: () => (what === "edit" ? edit(true) : act(what)) },
      label,
      el("kbd", { "aria-hidden": "true" }, key),
    ),
  );
  return el("div", { class: "deciding", role: "group", "aria-label": "Decide" }, made);
}

function editor(chosen, act, edit) {
  const typed = (event) => drafts.set(chosen.id, event.target.value);
  const save = (event) => {
    event.preventDefault();
    act("edit");
  };
  const key = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(event);
  };
  const text = drafts.get(chosen.id) ?? chosen.text;
  const rows = Math.min(Math.max(text.split("\n").length + 1, 4), 24);
  return el(
    "form",
    { class: "editing", onsubmit: save },
    el("label", { for: "editing" }, "What it should say"),
    el("textarea", { id: "editing", rows, value: text, oninput: typed, onkeydown: key, dir: "auto" }),
    el("div", { class: "now", "aria-live": "polite" }),
    el(
      "div",
      { class: "deciding" },
      el("button", { class: "main" }, "Save and keep"),
      el("button", { type: "button", onclick: () => edit(false) }, "Cancel"),
      el("span", { class: "muted" }, "Ctrl+Enter saves"),
    ),
  );
}

function said(chosen) {
  if (!chosen.evidence) return null;
  const quote = (one) =>
    el(
      "figure",
      { class: one.own ? "quote own" : "quote" },
      el("figcaption", {}, SPEAKERS[one.role] ?? one.role, one.line > 0 && el("span", { class: "muted" }, ` line ${one.line.toLocaleString()}`)),
      el("blockquote", { dir: "auto", tabindex: "0" }, words(one.text)),
    );
  const lines = chosen.said.length ? chosen.said.map(quote) : el("p", { class: "muted" }, "The transcript of that session is not to be had any more.");
  const session = chosen.session && [". ", el("a", { href: `/sessions/${encodeURIComponent(chosen.session)}` }, "What the session was told")];
  return el("section", {}, el("h3", {}, "Where it was said"), el("p", { class: "muted" }, words(chosen.evidence), session), lines);
}

const side = (name, one) => el("div", { class: "card" }, el("h4", {}, name), el("div", { class: "text", dir: "auto" }, tree(one.body)));

function beside(chosen) {
  const older = el("a", { href: address(chosen.old.id) }, words(chosen.old.title || chosen.old.id));
  return el(
    "section",
    {},
    el("h3", {}, "What it would replace"),
    el("div", { class: "sides" }, side(["Now: ", older], chosen.old), side("Instead", chosen)),
    el("p", { class: "muted" }, "Taking its place leaves the older one readable, marked as replaced. Keeping leaves both."),
  );
}

function alike(chosen) {
  return el(
    "section",
    {},
    el("h3", {}, "What it is most like"),
    side(el("a", { href: address(chosen.like.id) }, words(chosen.like.title || chosen.like.id)), chosen.like),
    el("p", { class: "muted" }, "Merging adds the candidate to the end of this one."),
  );
}

function whose(chosen) {
  const rows = chosen.wrote.map((one) => el("li", {}, when(one.at), " ", words(one.what), one.author && [" by ", el("strong", {}, words(one.author))]));
  return el(
    "section",
    {},
    el("h3", {}, "Where it is from"),
    el("p", {}, "It is meant as a rule, and nothing proves that it is your word: an agent wrote it, or a hand that memlane does not know."),
    el("p", {}, "If you keep it, it is handed over as your instruction."),
    rows.length ? el("ul", { class: "wrote" }, rows) : el("p", { class: "muted" }, "Nobody has noted who wrote it."),
  );
}
