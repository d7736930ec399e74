// What may not be true any more, or is there twice: the memories side by side, and a step for each way out.

import { get, post } from "../api.js";
import { badge } from "../app.js";
import { done } from "../doing.js";
import { address, chip, counted, el, empty, fill, problem, say, tree, when, words } from "../dom.js";
import { codeOf } from "./memory.js";

export const title = "Truth";
export const keys = { a: "take the first step of what is chosen" };

const KINDS = {
  wrong: ["Judged wrong", "You said of what an agent was told that it is wrong."],
  versions: ["Two versions after a merge", "Two branches have changed the same words. Which one is right?"],
  drifted: ["Code that has changed", "What these say of the code may not hold any more."],
  superseded: ["Contradicted or replaced", "Something newer says otherwise."],
  duplicate: ["Said twice", "These say the same, or nearly."],
  similar: ["Alike in meaning", "These may say the same in other words. If they are two things, let them be."],
  suspicious: ["Reads like instructions", "Memory is not there to tell a model what to do. Is this meant?"],
  expired: ["Expired", "Their time is over: no answer shows them."],
  stale: ["Not confirmed for long", "Nobody has said for a long time that these hold."],
  link: ["Links that lead nowhere", "They name memories that are not there."],
  empty: ["Without text", "They say nothing."],
  size: ["Very long", "They would be better in pieces."],
  register: ["Registers without a topic", "No update finds them, and no prompt shows them."],
  prune: ["Due by the rules of their place", "What a lane's own rules would archive or delete."],
  retention: ["Records past their time", "Your settings say how long records are kept."],
};
const SAID = {
  apply: "Done", accept: "It is right about the code as it is now", archive: "Archived", delete: "Deleted", restore: "Kept",
  confirm: "Confirmed", reject: "Rejected", unjudge: "It counts again", replace: "It took the place of the older one",
  merge: "Both are in one", version: "Settled", value: "Settled",
};
const TWICE = new Set(["duplicate", "similar"]);
const QUICK = 250; // ms in which nothing is said of waiting
const PAUSE = 60_000; // ms between two counts: a whole bank is looked through for each

let counted_at = 0;
let known = 0;
export async function count() {
  if (Date.now() - counted_at < PAUSE) return known;
  counted_at = Date.now();
  return (known = (await get("truth-count")).count);
}

export async function show(page, { query, signal, live, go, press }) {
  const kind = query.get("kind") ?? "";
  const filters = el("div", { class: "filters", role: "group", "aria-label": "Kinds" });
  const list = el("div");
  const looking = el("p", { class: "muted", role: "status" }, "Looking through all memories…");
  fill(page, el("h1", {}, "Truth"), filters, looking, list);
  let last = "";
  let asking; // one question at a time, and one more when something changed meanwhile
  const refresh = async (soon = "") => {
    await asking?.catch(() => {});
    const found = await (asking ??= get("truth", { kind, soon }, signal).finally(() => (asking = undefined)));
    if (soon && !found.items.length) return;
    fill(looking, soon && "Still looking for what is there twice…");
    known = found.count;
    counted_at = Date.now();
    badge("truth", known);
    const now = JSON.stringify(found);
    if (now === last) return;
    last = now;
    fill(filters, Object.entries(found.counts).map(([name, many]) => filter(name, many, kind, go)));
    fill(list, groups(found, kind, settle));
  };
  const failed = (error) => signal.aborted || (fill(looking), fill(list, problem(error)));
  // Takes a step about an item, whose card goes at once.
  const settle = async (item, step, card) => {
    if (step.do === "edit") return go(`${address(step.id)}?edit=yes`);
    try {
      const answer = await post("settle", { ...step, kind: item.kind, seen: item.seen });
      const next = card.nextElementSibling ?? card.previousElementSibling;
      card.remove();
      (next?.querySelector("[data-step]") ?? document.getElementById("main")).focus();
      last = "";
      done(SAID[step.do], answer, () => ((last = ""), refresh().catch(() => {})));
    } catch (error) {
      say([error.message, error.hint].filter(Boolean).join(" "));
    }
    refresh().catch(() => {});
  };
  const first = TWICE.has(kind) ? refresh() : refresh("yes").then(() => void refresh().catch(failed));
  first.catch(failed);
  await Promise.race([first, new Promise((later) => setTimeout(later, QUICK))]);
  press({ a: () => document.activeElement.closest?.(".doubt")?.querySelector("button")?.click() });
  live(({ memories }) => memories.length && refresh().catch(() => {}));
}

function filter(name, many, kind, go) {
  const on = name === kind;
  const choose = () => go(on ? "/truth" : `/truth?kind=${name}`);
  const label = [KINDS[name][0], el("small", {}, ` ${many.toLocaleString()}`)];
  return el("button", { type: "button", class: "chip", "aria-pressed": String(on), onclick: choose }, label);
}

function groups({ counts, items }, kind, settle) {
  if (!Object.keys(counts).length) {
    return empty("Nothing speaks against what is remembered.", "What an agent writes is looked at again whenever it or the code that it speaks of changes.");
  }
  if (!items.length) return empty("There is nothing of this kind any more.", el("a", { href: "/truth" }, "Show the others"));
  return Object.keys(KINDS).filter((name) => items.some((item) => item.kind === name)).map((name) => {
    const own = items.filter((item) => item.kind === name);
    const more = counts[name] - own.length;
    return el(
      "section",
      { class: "kind" },
      el("h2", {}, KINDS[name][0], " ", el("small", { class: "muted" }, counted(counts[name], "memory", "memories"))),
      el("p", { class: "muted" }, KINDS[name][1]),
      own.map((item) => doubt(item, settle)),
      more > 0 && !kind && el("p", {}, el("a", { href: `/truth?kind=${name}` }, `Show ${more.toLocaleString()} more`)),
      more > 0 && kind && el("p", { class: "muted" }, `${more.toLocaleString()} more come up as these are settled.`),
    );
  });
}

function doubt(item, settle) {
  const take = (step) => (event) => settle(item, step, event.target.closest(".doubt"));
  const first = item.steps.find((step) => step.side === undefined && step.says === undefined);
  const look = (step) => (step.do === "delete" ? "danger" : step === item.steps[0] && step === first ? "main" : "");
  const button = (step) => el("button", { type: "button", class: look(step), onclick: take(step) }, words(step.label));
  const buttons = (side) => item.steps.filter((step) => step.side === side && step.says === undefined).map(button);
  const versions = item.steps.filter((step) => step.says !== undefined).map((step) => version(step, button(step)));
  const loose = buttons(undefined);
  return el(
    "article",
    { class: "card doubt" },
    el("h3", {}, el("a", { href: address(item.id), "data-step": "" }, words(item.title || item.id))),
    !versions.length && !item.code && el("p", { class: "reason" }, words(item.reason)),
    el("div", { class: "sides" }, versions.length > 0 ? versions : item.sides.map((memory, at) => side(memory, item, buttons(at)))),
    item.code && codeOf({ findings: item.code.findings.filter((finding) => finding.verdict !== "fresh") }),
    loose.length > 0 && el("div", { class: "steps" }, loose),
    item.steps.length === 0 && item.command && el("p", { class: "muted" }, "In a terminal: ", el("code", {}, words(item.command))),
  );
}

function version(step, button) {
  const text = el("div", { class: "text", dir: "auto" }, words(step.says));
  return el("div", { class: "side" }, el("h4", {}, `Version ${step.number}`), text, el("div", { class: "steps" }, button));
}

function side(memory, item, steps) {
  return el(
    "div",
    { class: "side" },
    item.sides.length > 1 && el("h4", {}, el("a", { href: address(memory.id) }, words(memory.title || memory.id))),
    el("div", { class: "text", dir: "auto" }, tree(memory.body), memory.cut && el("p", { class: "muted" }, "…")),
    el(
      "p",
      { class: "facts" },
      el("code", {}, words(memory.id)),
      when(memory.at, { relative: true }),
      memory.unconfirmed && chip("unconfirmed", { class: "chip warn" }),
    ),
    steps.length > 0 && el("div", { class: "steps" }, steps),
  );
}
