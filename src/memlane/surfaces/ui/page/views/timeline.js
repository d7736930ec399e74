// What was remembered when: a calendar of the last year, the memories by day, and the bank as it was on a day.

import { get } from "../api.js";
import { counted, el, empty, fill, line, redrawn, say } from "../dom.js";

export const title = "Timeline";
const DAY = 86400000;
const WEEKS = 53;
const LONG = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeZone: "UTC" });
const MONTH = new Intl.DateTimeFormat(undefined, { month: "short", timeZone: "UTC" });
const iso = (time) => new Date(time).toISOString().slice(0, 10);

export async function show(page, { query, signal, live, go }) {
  const [day, asOf] = [query.get("day") ?? "", query.get("as-of") ?? ""];
  const [head, list] = [el("div", {}), el("div", {})];
  fill(page, el("h1", {}, "Timeline"), head, list);
  const [drawHead, drawList] = [redrawn(head), redrawn(list)];
  let limit; // of what is listed: more when somebody has asked for more
  const refresh = async () => {
    const found = await get("timeline", { day, limit }, signal);
    if (!found.memories.length && !day) return drawHead(null, () => []), drawList(found, () => empty("Nothing is remembered yet.", "What is remembered appears here by the day."));
    drawHead([found.days, found.past], () => [calendar(found.days, day, go), found.past && slider(found.days, asOf, go)]);
    if (asOf) return fill(list, await past(asOf, signal));
    drawList([found.memories, found.more], () => [
      day && el("p", {}, el("a", { href: "/timeline" }, "Up to today")),
      byDay(found.memories),
      found.more && el("p", {}, more(found.more)),
      found.older && el("p", {}, el("a", { href: `/timeline?day=${found.older}` }, `Go on from ${LONG.format(new Date(found.older))}`)),
    ]);
  };
  const more = (next) => {
    const ask = async (event) => {
      event.target.disabled = true;
      const before = list.querySelectorAll(".title").length;
      limit = next;
      await refresh().catch((error) => ((event.target.disabled = false), say(error.message)));
      list.querySelectorAll(".title")[before]?.focus({ preventScroll: true });
    };
    return el("button", { type: "button", onclick: ask }, "Show more");
  };
  await refresh();
  live(({ memories }) => memories.length && !asOf && refresh().catch(() => {}));
}

// A square for each day of the last year, the fuller the more it has brought.
function calendar(days, chosen, go) {
  const today = Math.floor(Date.now() / DAY) * DAY;
  const start = today - ((WEEKS - 1) * 7 + ((new Date(today).getUTCDay() + 6) % 7)) * DAY;
  const most = Math.max(...Object.values(days), 1);
  const columns = [];
  let month = "";
  for (let week = start; week <= today; week += 7 * DAY) {
    const name = MONTH.format(week);
    const squares = [];
    for (let at = week; at < week + 7 * DAY && at <= today; at += DAY) {
      const count = days[iso(at)] ?? 0;
      const level = count ? Math.min(4, 1 + Math.floor((3.99 * Math.log(count)) / Math.log(most + 1))) : 0;
      const said = `${LONG.format(at)}: ${count ? counted(count, "memory", "memories") : "nothing"}`;
      squares.push(el("i", { class: `day level-${level}`, title: said, "data-day": iso(at), "aria-current": iso(at) === chosen }));
    }
    columns.push(el("div", { class: "week" }, el("small", {}, name === month ? "" : name), squares));
    month = name;
  }
  const open = (event) => event.target.dataset.day && go(`/timeline?day=${event.target.dataset.day}`);
  const total = Object.values(days).reduce((sum, count) => sum + count, 0);
  const busiest = Object.entries(days).toSorted(([, one], [, other]) => other - one)[0];
  const said = busiest ? `${counted(total, "memory", "memories")} with a date; the most on ${LONG.format(new Date(busiest[0]))}: ${busiest[1]}.` : "No memory has a date.";
  const weeks = el("div", { class: "weeks", role: "img", "aria-label": said, tabindex: "0", onclick: open }, columns); // it may have to be scrolled
  const begin = new ResizeObserver(() => ((weeks.scrollLeft = weeks.scrollWidth), begin.disconnect())); // today is at its end
  begin.observe(weeks);
  return el("figure", { class: "calendar" }, weeks, el("figcaption", { class: "muted" }, said));
}

// The bank as it was on a day, as git knows it.
function slider(days, asOf, go) {
  const first = Object.keys(days)[0] ?? iso(Date.now());
  const today = Math.floor(Date.now() / DAY);
  const start = Math.min(Math.floor(Date.parse(first) / DAY), today - 1);
  const at = asOf ? Math.floor(Date.parse(asOf) / DAY) : today;
  const shown = el("output", { for: "as-of" }, asOf || "today");
  const input = el("input", {
    type: "range", id: "as-of", min: start, max: today, value: String(at),
    oninput: (event) => (shown.textContent = Number(event.target.value) === today ? "today" : iso(event.target.value * DAY)),
    onchange: (event) => go(Number(event.target.value) === today ? "/timeline" : `/timeline?as-of=${iso(event.target.value * DAY)}`),
  });
  input.setAttribute("value", at);
  return el("p", { class: "as-of" }, el("label", { for: "as-of" }, "As of "), input, shown);
}

async function past(day, signal) {
  try {
    const { memories, count } = await get("as-of", { day }, signal);
    return [el("h2", {}, `The bank on ${LONG.format(new Date(day))}: ${counted(count, "memory", "memories")}`), el("ul", { class: "memories past" }, memories.map((memory) => line(memory)))];
  } catch (error) {
    if (error.name === "AbortError") throw error;
    return empty(error.message, error.hint);
  }
}

function byDay(memories) {
  const groups = Object.groupBy(memories, ({ at }) => (at ? at.slice(0, 10) : ""));
  return Object.entries(groups).map(([date, own]) => [el("h2", {}, date ? LONG.format(new Date(date)) : "Without a date"), el("ul", { class: "memories" }, own.map((memory) => line(memory)))]);
}
