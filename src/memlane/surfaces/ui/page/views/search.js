// Searching as one types; without a query, the newest memories.

import { get } from "../api.js";
import { chip, counted, el, empty, fill, line, redrawn, words } from "../dom.js";

export const title = "Search";
const PAUSE = 30; // ms without a key before a search is made
const AGAIN = 250; // ms before the next look while the bank is being indexed
const PARTS = { words: "words", cosine: "meaning", closer: "close together", neighbours: "linked" };

let choices; // what can be chosen from, once for the life of the page

export async function show(page, { query, signal, live, go }) {
  const asked = { q: query.get("q") ?? "", lane: query.get("lane") ?? "", type: query.get("type") ?? "", tag: query.getAll("tag"), archived: query.get("archived") ?? "", order: query.get("order") ?? "" };
  const filters = el("div", { class: "filters", role: "group", "aria-label": "Filters" });
  const result = el("div", { class: "result" });
  fill(page, el("h1", {}, asked.q ? "Found" : "The newest memories"), filters, result);
  if (asked.q) await new Promise((done) => setTimeout(done, PAUSE));
  if (signal.aborted) return;
  const draw = redrawn(result);
  const refresh = async () => {
    const found = await get("search", asked, signal);
    draw(found, () => hits(found, asked));
    if (!found.complete) setTimeout(() => signal.aborted || refresh().catch(() => {}), AGAIN);
  };
  await refresh();
  choices ??= get("choices").catch(() => ({ lanes: {}, types: {}, tags: {} }));
  choices.then((found) => signal.aborted || fill(filters, chips(found, query, go)));
  live(() => {
    choices = undefined;
    return refresh().catch(() => {});
  });
}

function hits({ hits: found, complete }, { q }) {
  const note = complete ? "" : " so far; the rest is being indexed";
  if (!found.length && !q) return empty("Nothing is remembered yet.", ["Say something to your agent, or: ", el("code", {}, 'memlane add "Deploys go out on Tuesdays."')]);
  if (!found.length) return empty("Nothing is found.", `No memory has these words or means the like${note}.`);
  return [
    el("p", { class: "muted", role: "status" }, counted(found.length, "memory", "memories"), note),
    el("ul", { class: "memories" }, found.map((hit) => line(hit, hit.why && explained(hit)))),
  ];
}

// What a score is made of, as a bar: the parts that add up, each as long as it counts.
function explained({ why, score }) {
  const parts = Object.entries(why).filter(([name, value]) => name in PARTS && value > 0);
  const whole = parts.reduce((sum, [, value]) => sum + value, 0) || 1;
  const bar = parts.map(([name, value]) => el("i", { class: `part-${name}`, style: { "flex-grow": String(value / whole) } }));
  const said = parts.map(([name, value]) => `${PARTS[name]} ${value.toFixed(2)}`).join(", ");
  return el("details", { class: "why" }, el("summary", { title: said }, el("span", { class: "bar", role: "img", "aria-label": `Score ${score.toFixed(2)}: ${said}` }, bar), ` ${score.toFixed(2)}`),
    el("dl", {}, Object.entries(why).map(([name, value]) => [el("dt", {}, name), el("dd", {}, Number(value).toFixed(3))])));
}

function chips({ lanes, types, tags }, query, go) {
  const of = (name, values) =>
    Object.entries(values).map(([value, count]) => {
      const on = query.getAll(name).includes(value);
      const toggle = () => {
        const to = new URLSearchParams(query);
        to.delete(name);
        const kept = name === "tag" ? query.getAll(name).filter((each) => each !== value) : [];
        for (const each of on ? kept : [...kept, value]) to.append(name, each);
        go(`/search?${to}`);
      };
      return el("button", { type: "button", class: "chip", "aria-pressed": String(on), onclick: toggle }, name === "tag" ? "#" : "", words(value), el("small", {}, ` ${count.toLocaleString()}`));
    });
  const flag = (name, value, label) => {
    const on = query.get(name) === value;
    const toggle = () => {
      const to = new URLSearchParams(query);
      if (on) to.delete(name);
      else to.set(name, value);
      go(`/search?${to}`);
    };
    return el("button", { type: "button", class: "chip", "aria-pressed": String(on), onclick: toggle }, label);
  };
  return [...of("lane", lanes), ...of("type", types), ...of("tag", tags), flag("archived", "yes", "with archived"), flag("order", "time", "by time")];
}
