// The frame of the page: views and their addresses, keys, and what is told while the page is open.
//
// A view is a module with `title`, `show(page, asked)` and, if it has keys of its own, `keys`. `asked` has the rest of
// the address (`path`), its `query`, a `signal` that ends with the view, `live(tell)`, `go(address)` and `press(keys)`,
// which says what the view does when a key is pressed.

import { get } from "./api.js";
import { el, fill, problem, say } from "./dom.js";
import * as graph from "./views/graph.js";
import * as health from "./views/health.js";
import * as inbox from "./views/inbox.js";
import * as memory from "./views/memory.js";
import * as search from "./views/search.js";
import * as sessions from "./views/sessions.js";
import * as timeline from "./views/timeline.js";
import * as to from "./views/to.js";
import * as truth from "./views/truth.js";

const VIEWS = { sessions, inbox, search, timeline, truth, health, graph };
const ALL = new Map(Object.entries({ ...VIEWS, memory, to }));
const START = "sessions";
const AGAIN = 3000; // ms before the server is asked again
const CALM = 1000; // ms, at least, between two looks at what has changed
const main = document.getElementById("main");
const query = document.getElementById("query");
const listeners = new Set();
const pressed = {};
let leaving = new AbortController();

// -- addresses

export function go(address, { replace = false } = {}) {
  if (address === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  show();
}

function parts() {
  const [, name, ...rest] = location.pathname.split("/");
  return [name || START, rest.map(decoded).join("/")];
}

// A part of an address that somebody typed may not be a written-out text at all: "100%" is meant as it is, then.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function show() {
  leaving.abort();
  leaving = new AbortController();
  listeners.clear();
  for (const key of Object.keys(pressed)) delete pressed[key];
  const { signal } = leaving;
  const [name, path] = parts();
  const view = ALL.get(name) ?? { title: "No such page", show: nowhere };
  document.title = `${view.title} · memlane`;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view !== name) link.removeAttribute("aria-current");
    else link.setAttribute("aria-current", "page"), link.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  const asked = new URLSearchParams(location.search);
  if (document.activeElement !== query) query.value = name === "search" ? (asked.get("q") ?? "") : "";
  const page = el("div", { class: `view ${name}` });
  const live = (tell) => listeners.add(calmly(tell, signal));
  const busy = setTimeout(() => {
    main.setAttribute("aria-busy", "true");
    if (!main.querySelector(".view")) fill(main, el("p", { class: "muted", role: "status" }, "Looking at the bank…"));
  }, 250);
  signal.addEventListener("abort", () => clearTimeout(busy));
  const press = (keys) => Object.assign(pressed, keys);
  try {
    await view.show(page, { path, query: asked, signal, live, go, press });
  } catch (error) {
    if (signal.aborted) return;
    fill(page, problem(error));
    live(show); // a bank that was not there, or not trusted, may be now
  }
  if (signal.aborted) return;
  clearTimeout(busy);
  main.removeAttribute("aria-busy");
  fill(main, page);
  if (document.activeElement === document.body) main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

async function nowhere() {
  throw Object.assign(new Error("There is no such page."), { hint: "Choose one of the views." });
}

// What a view does about changes is done once at a time, and then waits as long as it took, or a little: however much
// is written meanwhile is told together, so that an agent at work makes no storm of questions.
function calmly(tell, signal) {
  let waiting; // what was told while it was busy
  let busy = false;
  const again = () => {
    const next = waiting;
    [busy, waiting] = [false, undefined];
    if (next && !signal?.aborted) calm(next);
  };
  const calm = async (told) => {
    if (busy) {
      const before = waiting ?? { memories: [], sessions: false };
      waiting = { memories: [...new Set([...before.memories, ...told.memories])], sessions: before.sessions || told.sessions };
      return;
    }
    busy = true;
    const start = performance.now();
    try {
      await tell(told);
    } finally {
      setTimeout(again, Math.max(CALM, performance.now() - start));
    }
  };
  return calm;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || link.target || link.origin !== location.origin || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname + link.search);
});
window.addEventListener("popstate", show);

// -- the frame

fill(
  document.getElementById("views"),
  el("ul", {}, Object.entries(VIEWS).map(([name, view]) => el("li", {}, el("a", { href: `/${name}`, "data-view": name }, view.title, el("span", { class: "badge", hidden: true }))))),
);

export function badge(name, count) {
  const node = document.querySelector(`#views a[data-view="${name}"] .badge`);
  if (!node) return;
  node.hidden = !count;
  node.textContent = count > 99 ? "99+" : count;
}

// How much waits in each view that counts it.
const count = () => Promise.all(Object.entries(VIEWS).map(([name, view]) => view.count?.().then((found) => badge(name, found), () => {})));

query.addEventListener("input", () => {
  const kept = parts()[0] === "search" ? new URLSearchParams(location.search) : new URLSearchParams();
  kept.set("q", query.value);
  go(`/search?${kept}`, { replace: parts()[0] === "search" });
});
document.getElementById("finder").addEventListener("submit", (event) => {
  event.preventDefault();
  document.querySelector("main .title")?.focus();
});

const theme = document.getElementById("theme");
const dark = () => document.documentElement.dataset.theme === "dark" || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "";
theme.addEventListener("click", () => {
  const to = dark() ? "light" : "dark";
  document.documentElement.dataset.theme = to;
  localStorage.setItem("theme", to);
});

// -- keys

const KEYS = { "/": "search", j: "next", k: "previous", Enter: "open", "?": "these keys", ...Object.fromEntries(Object.entries(VIEWS).map(([, view], at) => [`${at + 1}`, view.title])) };

function help() {
  const own = ALL.get(parts()[0])?.keys ?? {};
  const rows = Object.entries({ ...KEYS, ...own }).map(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)]);
  const dialog = el("dialog", { "aria-label": "Keys" }, el("h2", {}, "Keys"), el("dl", {}, rows), el("form", { method: "dialog" }, el("button", {}, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function step(by) {
  const titles = [...document.querySelectorAll("main .title, main [data-step]")];
  const at = titles.indexOf(document.activeElement.closest?.(".title, [data-step]"));
  const to = titles[at < 0 && by < 0 ? titles.length - 1 : at + by];
  to?.focus();
  to?.scrollIntoView({ block: "nearest" });
}

document.getElementById("help").addEventListener("click", help);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const typing = event.target.matches("input, textarea, select, [contenteditable]");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (event.key === "ArrowDown" && event.target === query) return step(1), event.preventDefault();
  if (typing || document.querySelector("dialog[open]")) return;
  const view = Object.keys(VIEWS)[Number(event.key) - 1];
  if (pressed[event.key]) pressed[event.key]();
  else if (event.key === "/") query.focus();
  else if (event.key === "j" || event.key === "ArrowDown") step(1);
  else if (event.key === "k" || event.key === "ArrowUp") step(-1);
  else if (event.key === "?") help();
  else if (view) go(`/${view}`);
  else return;
  event.preventDefault();
});

// -- what is told while the page is open

const counting = calmly(count);
// A browser asks again by itself when the server is gone, but not when one that was started anew has refused it: that
// one knows this page again as soon as its address was opened in another tab.
function listen(seen) {
  const events = new EventSource(`/api/events?seen=${encodeURIComponent(seen)}`);
  const hear = (told) => {
    for (const tell of listeners) tell(told);
    if (told.memories.length) counting(told);
  };
  events.addEventListener("message", (event) => hear(JSON.parse(event.data)));
  events.addEventListener("error", () => {
    document.body.classList.add("alone");
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, AGAIN, seen);
  });
  events.addEventListener("open", () => {
    if (!document.body.classList.contains("alone")) return;
    document.body.classList.remove("alone");
    hear({ memories: ["*"], sessions: true }); // what was asked for meanwhile was not answered
  });
}

// What a view shows is never older than what was seen before it was asked for. The views count what waits in them when
// the first one is there.
async function start() {
  const { project = "", seen = "" } = await get("frame").catch(() => ({})); // the first view says why
  document.querySelector(".brand").title = project;
  await show();
  listen(seen);
  if (seen) counting({ memories: [], sessions: false });
}
start();
