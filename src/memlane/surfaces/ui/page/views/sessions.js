// What the agents were told and when: the sessions, and of one of them everything that was handed over, and why.

import { get, post } from "../api.js";
import { address, chip, counted, el, empty, fill, problem, redrawn, say, when, words } from "../dom.js";

export const title = "Sessions";
export const keys = { u: "useful", w: "wrong", n: "never again", b: "the text that the agent got" };

const MOMENTS = {
  "session-start": "The session started",
  prompt: "You asked",
  tool: "Before a tool was used",
  stop: "The agent had answered",
  "pre-compact": "Before the session was shortened",
  "session-end": "The session ended",
};
const VERDICTS = [
  ["useful", "u", "Useful", "Noted: it was useful."],
  ["wrong", "w", "Wrong", "Noted. It is not handed over any more until it says something else."],
  ["never", "n", "Never again", "Noted. No prompt gets it unasked any more; a search still finds it."],
];
const place = (id) => `/sessions/${encodeURIComponent(id)}`;
const PAUSE = 10_000; // ms between two looks at all sessions together
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

export const show = (page, asked) => (asked.path ? one(page, asked) : all(page, asked));

// -- the list

async function all(page, { signal, live }) {
  let [limit, summed] = [40, 0];
  const summary = el("div", { class: "summary" });
  const list = el("div", {});
  const draw = redrawn(list);
  const refresh = async () => {
    const found = await get("sessions", { limit }, signal);
    draw(found, () => (found.sessions.length ? [el("ul", { class: "memories" }, found.sessions.map(entry)), found.more && limit < 200 && more] : nothing()));
    if (!found.sessions.length || Date.now() - summed < PAUSE) return;
    summed = Date.now();
    get("told", {}, signal).then((told) => fill(summary, numbers(told)), () => {});
  };
  const more = el("button", { type: "button", onclick: () => ((limit = 200), refresh().catch((error) => say(error.message))) }, "Show older sessions");
  fill(page, el("h1", {}, "What your agents were told"), summary, list);
  await refresh();
  live(({ sessions }) => sessions && refresh().catch(() => {}));
}

const nothing = () =>
  empty(
    "No session has been seen here yet.",
    ["Connect your agent with ", el("code", {}, "memlane connect"), ", then start a session in this project."],
    "Whatever it is told from memory is listed here, prompt by prompt, with the reason.",
  );

function numbers(told) {
  const share = told.share_useful === null ? "–" : `${Math.round(told.share_useful * 100)} %`;
  const tiles = [
    [told.injections.toLocaleString(), "memories handed over", ""],
    [told.prompts.toLocaleString(), "prompts", ""],
    [told.prompts_without.toLocaleString(), "prompts that got nothing", "Most prompts need no memory."],
    [share, told.judged ? `useful, of ${told.judged.toLocaleString()} judged` : "useful: none is judged yet", ""],
  ];
  return el("dl", {}, tiles.map(([value, name, why]) => el("div", { title: why || null }, el("dt", {}, name), el("dd", {}, value))));
}

const named = ({ title: begun, id }) => begun || `Session ${id.slice(0, 8)}`;

const asked = ({ prompts, without }) => `${counted(prompts, "prompt")}${without ? `, ${without.toLocaleString()} got nothing` : ""}`;

function facts(session) {
  return el(
    "p",
    { class: "facts" },
    session.client && chip(session.client),
    session.branch && chip(session.branch, { class: "chip branch" }),
    el("span", {}, asked(session)),
    session.given > 0 && el("span", {}, `${counted(session.given, "memory", "memories")} given, ${counted(session.tokens, "token")}`),
    session.captured > 0 && el("span", {}, `${session.captured.toLocaleString()} recorded`),
    session.distilled > 0 && chip(`${session.distilled.toLocaleString()} learned`, { class: "chip good" }),
    session.failed > 0 && chip(`${session.failed.toLocaleString()} failed`, { class: "chip bad" }),
    when(session.last, { relative: true }),
  );
}

const entry = (session) =>
  el(
    "li",
    { class: "memory" },
    el("a", { href: place(session.id), class: "title" }, words(named(session))),
    facts(session),
  );

// -- one session

const back = () => el("a", { href: "/sessions" }, "‹ All sessions");

async function one(page, { path, signal, live, press }) {
  const head = el("div", {});
  const events = el("ol", { class: "told" });
  const drawn = [];
  let session;
  const refresh = async () => {
    session = await get("session", { id: path }, signal);
    document.title = `${named(session)} · memlane`;
    fill(head, el("p", {}, back()), el("h1", {}, words(named(session))), facts(session), el("p", { class: "muted path" }, words(session.id)));
    // What has not changed stays as it is: a text that is open, and where one stands.
    session.events.forEach((event, at) => {
      const said = JSON.stringify(event);
      if (drawn[at] === said) return;
      drawn[at] = said;
      const made = moment(event, session, judge, session.events[at - 1]);
      if (events.children[at]) exchange(events.children[at], made);
      else events.append(made);
    });
    drawn.length = session.events.length;
    while (events.children.length > drawn.length) events.lastChild.remove();
  };
  const judge = async (event, item, verdict) => {
    const before = item.verdict ?? "";
    const to = verdict === before ? "" : verdict;
    try {
      await post("judge", { id: item.id, session: session.id, at: event.at, verdict: to || null });
      await refresh();
      const undo = () => judge(event, { ...item, verdict: to }, before || to);
      say(to ? VERDICTS.find(([name]) => name === to)[3] : "Taken back.", to && undo);
    } catch (error) {
      say(error.hint ? `${error.message} ${error.hint}` : error.message);
    }
  };
  const pressed = (verdict) => () => {
    const button = document.activeElement?.closest?.("[data-given]")?.querySelector(`[data-verdict="${verdict}"]`);
    if (button) button.click();
    else say("Choose a memory with j and k first.");
  };
  press({
    ...Object.fromEntries(VERDICTS.map(([verdict, key]) => [key, pressed(verdict)])),
    b: () => {
      const text = document.activeElement?.closest?.(".moment")?.querySelector("details");
      if (text) text.open = !text.open;
    },
  });
  fill(page, head, events);
  try {
    await refresh();
  } catch (error) {
    if (error.code !== "not_found") throw error;
    return fill(page, problem(error), el("p", {}, back()));
  }
  live(({ sessions }) => sessions && refresh().catch(() => {}));
}

// Puts an element in the place of another, with the focus and the open text where they were.
function exchange(old, made) {
  const places = (node) => [...node.querySelectorAll("h2, a, button, summary")];
  const at = places(old).indexOf(document.activeElement);
  const text = made.querySelector("details");
  if (text) text.open = old.querySelector("details")?.open ?? false;
  old.replaceWith(made);
  if (at >= 0) places(made)[at]?.focus({ preventScroll: true });
}

const unlogged = () => el("span", { class: "muted" }, "Its words are not in the log.");

// A reason, with the memories that it names as links.
function reason(text) {
  const parts = text.split(/((?:user\/)?(?:notes|vault|topics|records|layers):[^\s,;]+)/);
  return parts.map((part, at) => (at % 2 ? el("a", { href: address(part) }, words(part)) : words(part)));
}

function moment(event, session, judge, before) {
  const name = MOMENTS[event.event] ?? event.event;
  const at = new Date(event.at);
  const another = !before || DAY.format(new Date(before.at)) !== DAY.format(at);
  return el(
    "li",
    { class: `moment ${event.event}` },
    el("div", { class: "when" }, el("time", { datetime: event.at, title: at.toLocaleString() }, another && el("span", {}, DAY.format(at)), TIME.format(at))),
    el(
      "div",
      { class: "what" },
      el("h2", { tabindex: "-1", "data-step": true }, name, event.tokens > 0 && el("span", { class: "muted" }, ` ${counted(event.tokens, "token")}`)),
      event.event === "prompt" && el("blockquote", { dir: "auto" }, event.prompt ? words(event.prompt) : unlogged()),
      event.failed && el("p", { class: "note bad" }, "memlane failed here: ", words(event.failed)),
      given(event, session, judge),
      kept("Recorded of what was said", event.captured),
      kept("Learned, to be confirmed in the inbox", event.distilled),
    ),
  );
}

const GETS = new Set(["session-start", "prompt", "tool"]);

function given(event, session, judge) {
  if (!event.given.length && !event.block) {
    if (event.failed || event.captured.length || event.distilled.length) return null;
    if (!GETS.has(event.event)) return el("p", { class: "nothing" }, "Nothing new was kept.");
    return el("p", { class: "nothing" }, "Nothing was handed over", event.why_nothing ? [": ", reason(event.why_nothing)] : "", ".");
  }
  return [
    event.given.length > 0 && el("ul", { class: "given" }, event.given.map((item) => told(event, item, judge))),
    event.block
      ? el("details", {}, el("summary", {}, "The text that the agent got"), el("pre", { dir: "auto", tabindex: "0" }, words(event.block)))
      : el("p", { class: "muted" }, session.words ? "The text itself is not in the log any more." : "The text itself is not logged: hook.log is off."),
  ];
}

const relevant = (near) =>
  el(
    "span",
    { class: "near", title: "How probable it was that the prompt is about it" },
    el("meter", { min: 0, max: 1, value: near, "aria-label": "Relevance" }),
    ` ${Math.round(near * 100)} % relevant`,
  );

function verdicts(event, item, judge) {
  const button = ([verdict, key, label]) => {
    const state = { "data-verdict": verdict, "aria-pressed": String(item.verdict === verdict), "aria-keyshortcuts": key };
    return el("button", { type: "button", title: `${label} (${key})`, onclick: () => judge(event, item, verdict), ...state }, label);
  };
  return el("div", { class: "verdicts", role: "group", "aria-label": "What it was worth" }, VERDICTS.map(button));
}

function told(event, item, judge) {
  const near = item.relevance;
  return el(
    "li",
    { "data-given": item.id },
    el(
      "div",
      {},
      el("a", { href: address(item.id), class: "title" }, words(item.title || item.id)),
      el(
        "p",
        { class: "facts" },
        item.why && el("span", {}, words(item.why)),
        near !== undefined && relevant(near),
        el("code", {}, words(item.id)),
      ),
    ),
    verdicts(event, item, judge),
  );
}

function kept(name, items) {
  const rows = items.map((item) => el("li", {}, el("a", { href: address(item.id) }, words(item.title || item.id))));
  return rows.length > 0 && [el("h3", {}, name), el("ul", { class: "kept" }, rows)];
}
