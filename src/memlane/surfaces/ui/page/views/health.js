// Whether all is well, and what to do where it is not.

import { get, post } from "../api.js";
import { address, chip, counted, el, fill, problem, redrawn, say, when, words } from "../dom.js";

export const title = "Health";

const SEVERITIES = { error: ["bad", "error"], warning: ["warn", "warning"], info: ["", "remark"] };
const IDS = /^(notes|vault|topics|records|layers):[^:]+$/; // of memories
const QUICK = 250; // ms in which nothing is said of waiting

export async function show(page, { signal, live }) {
  const body = el("div");
  fill(page, el("h1", {}, "Health"), body);
  const draw = redrawn(body);
  const refresh = async () =>
    draw(await get("health", {}, signal), (found) => [findings(found, mend), refused(found), shared(found), sizes(found), clients(found), places(found)]);
  const mend = async (event) => {
    event.target.disabled = true;
    try {
      const { mended } = await post("mend");
      say(mended.length ? `Mended: ${counted(mended.length, "finding")}` : "Nothing could be mended.");
      await refresh();
    } catch (error) {
      say([error.message, error.hint].filter(Boolean).join(" "));
    }
  };
  fill(body, el("p", { class: "muted", role: "status" }, "Looking at every file of the bank…"));
  const first = refresh();
  first.catch((error) => signal.aborted || fill(body, problem(error)));
  await Promise.race([first, new Promise((later) => setTimeout(later, QUICK))]);
  live(({ memories }) => memories.length && refresh().catch(() => {}));
}

const section = (heading, ...inside) => el("section", { class: "card part" }, el("h2", {}, heading), ...inside);

const size = (bytes) => (bytes < 1e3 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

function table(heads, rows) {
  const cells = (name, values) => el("tr", {}, values.map((value) => el(name, {}, value)));
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": heads.join(", ") },
    el("table", {}, el("thead", {}, cells("th", heads)), el("tbody", {}, rows.map((row) => cells("td", row)))));
}

// -- what doctor finds

function findings({ findings: found, counts, fixable }, mend) {
  const well = "Nothing is wrong with the files, the index, the settings or the clients.";
  if (!found.length) return section("All is well", el("p", { class: "good" }, well));
  const there = Object.entries(counts).filter(([, many]) => many);
  const said = there.map(([name, many]) => chip(counted(many, ...SEVERITIES[name].slice(1)), { class: `chip ${SEVERITIES[name][0]}` }));
  const checks = [...new Set(found.map((finding) => finding.check))];
  return section(
    "What is wrong",
    el(
      "div",
      { class: "steps" },
      said,
      fixable > 0 && el("button", { type: "button", class: "main", onclick: mend }, `Mend ${fixable.toLocaleString()} of them`),
    ),
    fixable > 0 && el("p", { class: "muted" }, "Mending makes derived files anew and corrects permissions. It touches no memory."),
    checks.map((check) => group(found.filter((finding) => finding.check === check))),
  );
}

const FEW = 5;

function group(found) {
  const rows = found.map(finding);
  const summary = el("summary", {}, `${(rows.length - FEW).toLocaleString()} more like these`);
  const rest = rows.length > FEW && el("li", {}, el("details", {}, summary, el("ul", { class: "plain" }, rows.slice(FEW))));
  return el("ul", { class: "plain found" }, rows.slice(0, FEW), rest);
}

const memory = (id) => el("a", { href: address(id), "data-step": "" }, words(id));

function finding({ severity, check, where, why, fix }) {
  return el(
    "li",
    {},
    el("p", {}, chip(check, { class: `chip ${SEVERITIES[severity][0]}` }), " ", words(why)),
    where && el("p", { class: "path muted" }, IDS.test(where) ? memory(where) : words(where)),
    fix && el("p", {}, el("span", { class: "muted" }, "Next: "), fix.startsWith("memlane ") ? el("code", {}, words(fix)) : words(fix)),
  );
}

// -- what the gate refused

function refused({ refused: found }) {
  const rows = found.map((each) => [words(each.rule), each.week.toLocaleString(), each.all.toLocaleString(), when(each.last)]);
  return section(
    "What was refused",
    found.length
      ? table(["kind", "last 7 days", "in all", "last"], rows)
      : el("p", { class: "muted" }, "Nothing yet. Secrets, personal data and what a place does not take are refused before they are written."),
    found.length > 0 && el("p", { class: "muted" }, "Only the kind is counted. What was refused is kept nowhere."),
  );
}

// -- whom it is shared with

function shared({ sync: found }) {
  const state = ({ at, failed, held, unsent }) => [
    failed ? chip("the last sync failed", { class: "chip bad" }) : at ? ["in step ", when(at)] : "never in step yet",
    held.length > 0 && `, ${held.length.toLocaleString()} held back`,
    unsent.length > 0 && `, ${unsent.length.toLocaleString()} not sent`,
  ];
  const rows = found.map((each) => [words(each.name), words(each.url), each.files.toLocaleString(), state(each)]);
  return rows.length > 0 && section("Whom it is shared with", table(["remote", "where", "files", "state"], rows));
}

// -- how much there is

function sizes({ sizes: { lanes, count, archived, removed }, index }) {
  const rows = Object.entries(lanes).filter(([, lane]) => lane.count || lane.archived).map(([name, lane]) =>
    [el("a", { href: `/search?lane=${name}` }, name), lane.count.toLocaleString(), lane.archived.toLocaleString(), size(lane.bytes)]);
  const behind = count + archived - index.memories;
  const later = behind > 0 ? `; ${behind.toLocaleString()} follow with the next search` : "";
  return section(
    "How much there is",
    rows.length ? table(["kept in", "memories", "archived", "size"], rows) : el("p", { class: "muted" }, "Nothing is remembered yet."),
    el(
      "dl",
      { class: "pairs" },
      el("dt", {}, "in all"), el("dd", {}, counted(count, "memory", "memories"), archived ? `, ${archived.toLocaleString()} archived` : ""),
      el("dt", {}, "can be brought back"), el("dd", {}, counted(removed, "deleted memory", "deleted memories")),
      el("dt", {}, "index"), el("dd", {}, `${counted(index.memories, "memory", "memories")}, ${size(index.bytes)}, encoder ${index.encoder}`, later),
    ),
  );
}

// -- who reads and writes it, and where it is

function clients({ clients: found }) {
  const rows = found.map((client) => [words(client.title), client.connected.length
    ? chip(`connected for ${client.connected.map((scope) => (scope === "user" ? "you" : "this project")).join(" and ")}`, { class: "chip good" })
    : ["not connected: ", el("code", {}, `memlane connect ${client.client}`)]]);
  const none = el("p", { class: "muted" }, "No client that memlane knows is installed. ", el("code", {}, "memlane connect"), " lists them.");
  return section("Clients", rows.length ? table(["client", "state"], rows) : none);
}

function places({ places: at }) {
  const path = (text) => el("span", { class: "path" }, words(text));
  const rows = [
    ["bank", path(at.bank)],
    at.project && ["project", path(at.project)],
    ["your own bank", at.own ? [path(at.own), " is read as well"] : `is not read: ${at.why_not}`],
    ["git", at.git ? [path(at.git)] : "The bank is not in a repository."],
    ["journal", `${size(at.journal)}; what was changed can be taken back from it`],
    ["memlane", at.version],
  ].filter(Boolean);
  return section("Where it is", el("dl", { class: "pairs" }, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
}
