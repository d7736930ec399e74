// Making elements. Texts of memories become text nodes only: nothing here ever parses markup.

export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") for (const [property, to] of Object.entries(value)) node.style.setProperty(property, to);
    else if (key === "value") node.value = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const fill = (node, ...children) => node.replaceChildren(...el("div", {}, ...children).childNodes);

// How a node is filled with what the server tells, again and again: what is as it was is left alone, and what had the
// focus has it afterwards.
export function redrawn(node) {
  let last = "";
  return (found, draw) => {
    const now = JSON.stringify(found);
    if (now === last) return;
    last = now;
    const href = node.contains(document.activeElement) && document.activeElement.getAttribute("href");
    fill(node, draw(found));
    if (href) node.querySelector(`[href="${CSS.escape(href)}"]`)?.focus({ preventScroll: true });
  };
}

// Characters that nobody sees, or that turn the direction of what follows, are shown by their numbers.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

export function words(text) {
  const found = [];
  let end = 0;
  for (const match of String(text).matchAll(UNSEEN)) {
    found.push(text.slice(end, match.index));
    const number = match[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    found.push(el("span", { class: "unseen-character", title: "A character that is not seen" }, `U+${number}`));
    end = match.index + match[0].length;
  }
  return [...found, String(text).slice(end)];
}

// A text, or the pieces of one, each with whether it is to be marked: [["Deploys", true], [" go out", false]].
export const marked = (text) => (typeof text === "string" ? words(text) : text.map(([piece, found]) => (found ? el("mark", {}, words(piece)) : words(piece))));

// The elements of a memory's Markdown, which the server sends as a tree.
const ALLOWED = new Set("p ul ol li blockquote em strong s table thead tbody tr th td hr br h3 h4 h5 h6 pre code a span".split(" "));

export function tree(nodes) {
  return nodes.map((node) => {
    if (typeof node === "string") return words(node);
    const [name, attributes, children] = node;
    if (!ALLOWED.has(name)) return tree(children);
    if (name !== "a") return el(name, { title: attributes.title, start: attributes.start }, tree(children));
    const { href } = attributes;
    if (href.startsWith("/to/")) return el("a", { href, title: attributes.title }, tree(children));
    if (!/^(https?|mailto):/i.test(href)) return tree(children);
    return el("a", { href, target: "_blank", rel: "noopener noreferrer nofollow" }, tree(children));
  });
}

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const SINCE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

export function when(iso, { relative = false } = {}) {
  if (!iso) return el("span", { class: "muted" }, "no date");
  const at = new Date(iso);
  const seconds = (at - Date.now()) / 1000;
  const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const [unit, size] = units.find(([, length]) => Math.abs(seconds) >= length) ?? ["minute", 60];
  const near = relative && Math.abs(seconds) < 7 * 86400;
  return el("time", { datetime: iso, title: MOMENT.format(at) }, near ? SINCE.format(Math.round(seconds / size), unit) : DAY.format(at));
}

export const counted = (count, noun, several = `${noun}s`) => `${count.toLocaleString()} ${count === 1 ? noun : several}`;

export const address = (id) => `/memory/${encodeURIComponent(id).replaceAll("%2F", "/").replaceAll("%3A", ":")}`;

export const chip = (text, attributes = {}) => el("span", { class: "chip", ...attributes }, words(text));

// What is said where there is nothing to show: what it means, and what to do next.
export const empty = (title, ...next) => el("section", { class: "empty" }, el("h2", {}, title), ...next.map((each) => el("p", {}, each)));

// A line on something that was done, for eyes and for screen readers, with a way back where there is one.
export function say(text, undo) {
  const said = document.getElementById("said");
  fill(said, el("span", {}, words(text)), undo && el("button", { type: "button", onclick: undo }, "Undo"));
  said.classList.add("shown");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => said.classList.remove("shown"), undo ? 12000 : 5000);
}

export const problem = (error) =>
  el("section", { class: "problem", role: "alert" }, el("h2", {}, words(error.message)), error.hint && el("p", {}, words(error.hint)));

// The memories of a list, with what is known of each in one line.
export function line(memory, ...more) {
  return el(
    "li",
    { class: "memory" },
    el("a", { href: address(memory.id), class: "title" }, words(memory.title || memory.id)),
    memory.place && el("span", { class: "muted" }, " › ", words(memory.place)),
    memory.passage?.length > 0 && el("p", { class: "passage", dir: "auto" }, marked(memory.passage)),
    el(
      "p",
      { class: "facts" },
      el("code", {}, words(memory.id)),
      when(memory.at, { relative: true }),
      memory.type && chip(memory.type),
      memory.unconfirmed && chip("unconfirmed", { class: "chip warn" }),
      memory.superseded_by && chip("replaced", { class: "chip warn" }),
      memory.status === "archived" && chip("archived"),
      memory.suspicious?.length > 0 && chip("reads like instructions", { class: "chip bad" }),
      (memory.tags ?? []).filter((tag) => tag !== "unconfirmed").map((tag) => el("a", { class: "chip", href: `/search?tag=${encodeURIComponent(tag)}` }, "#", words(tag))),
    ),
    ...more,
  );
}
