// All memories, tags and files with their links, as a picture; what is linked most also as a list.

import { get } from "../api.js";
import { address, counted, el, empty, fill, words } from "../dom.js";
import { picture } from "../graph.js";

export const title = "Graph";
export const keys = { "+ −": "nearer, farther", "0": "all of it" };
const LABELS = 40; // nodes whose names are shown
const LISTED = 30;
const LANES = ["notes", "vault", "topics", "records", "layers"];
const TONES = { notes: "--part-1", vault: "--part-2", topics: "--part-3", records: "--part-4", layers: "--good", tag: "--warn", file: "--part-5" };
const NAMES = { tag: "tags", file: "files" };

export async function show(page, { query, signal, live, go }) {
  const found = await get("graph", {}, signal);
  if (!found.ids.length) return fill(page, el("h1", {}, "Graph"), empty("There is nothing to draw yet.", "Memories that link to each other, to files or to tags appear here."));
  const kinds = [...new Set(found.kinds)].sort((one, other) => order(one) - order(other));
  const hidden = new Set(query.getAll("without"));
  const canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": `A picture of ${counted(found.ids.length, "node")}; the list below has those that are linked most.` });
  const labels = el("div", { class: "labels", "aria-hidden": "true" });
  const linked = el("ol", { class: "linked" });
  const chips = kinds.map((kind) => {
    const toggle = () => {
      const to = new URLSearchParams(query);
      to.delete("without");
      for (const each of kinds) if (hidden.has(each) !== (each === kind)) to.append("without", each);
      go(`/graph?${to}`, { replace: true });
    };
    const swatch = el("i", { class: "swatch", style: { background: `var(${TONES[kind] ?? "--part-5"})` } });
    return el("button", { type: "button", class: "chip", "aria-pressed": String(!hidden.has(kind)), onclick: toggle }, swatch, NAMES[kind] ?? kind);
  });
  const cut = found.total > found.ids.length ? `; the ${found.ids.length.toLocaleString()} that are linked most are drawn` : "";
  fill(
    page,
    el("h1", {}, "Graph"),
    el("div", { class: "filters", role: "group", "aria-label": "What is drawn" }, chips),
    el("p", { class: "muted" }, counted(found.total, "node"), ", ", counted(found.edges.length / 2, "link"), cut, "."),
    el("div", { class: "picture" }, canvas, labels),
    el("h2", {}, "Linked most"),
    linked,
  );
  const drawn = chosen(found, hidden);
  fill(linked, listed(found, drawn));
  const ready = () => (canvas.isConnected && canvas.clientWidth ? started(canvas, labels, found, drawn, { signal, go, plain: query.get("plain") }) : signal.aborted || requestAnimationFrame(ready));
  requestAnimationFrame(ready);
}

const order = (kind) => (LANES.includes(kind) ? LANES.indexOf(kind) : LANES.length + Object.keys(NAMES).indexOf(kind));

// The nodes and edges that are left, with the number of links of each node.
function chosen({ kinds, edges }, hidden) {
  const nodes = [...kinds.keys()].filter((at) => !hidden.has(kinds[at]));
  const there = new Uint8Array(kinds.length);
  for (const at of nodes) there[at] = 1;
  const kept = [];
  const degree = new Uint32Array(kinds.length);
  for (let at = 0; at < edges.length; at += 2) {
    const [from, to] = [edges[at], edges[at + 1]];
    if (!there[from] || !there[to]) continue;
    kept.push(from, to);
    degree[from] += 1;
    degree[to] += 1;
  }
  return { nodes, edges: kept, degree, most: nodes.toSorted((one, other) => degree[other] - degree[one]) };
}

const leads = ({ ids, kinds, titles }, at) => (kinds[at] === "tag" ? `/search?tag=${encodeURIComponent(titles[at])}` : kinds[at] === "file" ? `/to/${encodeURIComponent(titles[at])}` : address(ids[at]));

function listed(found, { most, degree }) {
  return most.slice(0, LISTED).map((at) => el("li", {}, el("a", { class: "title", href: leads(found, at) }, words(found.titles[at])), el("span", { class: "muted" }, ` ${counted(degree[at], "link")}`)));
}

function started(canvas, labels, found, { nodes, edges, degree, most }, { signal, go, plain }) {
  const css = getComputedStyle(document.documentElement);
  const tone = (name) => css.getPropertyValue(name).trim().match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16) / 255);
  const colours = Object.fromEntries(Object.entries(TONES).map(([kind, name]) => [kind, tone(name)]));
  const image = picture(canvas, [...tone("--muted"), 0.35], plain);
  const room = Math.max(0.45, Math.min(1, Math.sqrt(2000 / nodes.length)));
  const size = (at) => room * Math.min(5 + 1.6 * Math.sqrt(degree[at]), 20);
  image.load(
    Float32Array.from(nodes.flatMap((at) => [found.x[at], found.y[at]])),
    Float32Array.from(nodes.flatMap((at) => colours[found.kinds[at]] ?? colours.file)),
    Float32Array.from(nodes, size),
    Float32Array.from(edges.flatMap((at) => [found.x[at], found.y[at]])),
  );
  const view = { scale: 1, dx: 0, dy: 0 };
  let over = -1;

  const whole = () => {
    const [width, height] = [(canvas.width = canvas.clientWidth * devicePixelRatio), (canvas.height = canvas.clientHeight * devicePixelRatio)];
    const range = (values) => nodes.reduce(([least, last], at) => [Math.min(least, values[at]), Math.max(last, values[at])], [Infinity, -Infinity]);
    const [[left, right], [top, bottom]] = [range(found.x), range(found.y)];
    view.scale = 0.92 * Math.min(width / (right - left || 1), height / (bottom - top || 1));
    view.dx = width / 2 - (view.scale * (left + right)) / 2;
    view.dy = height / 2 - (view.scale * (top + bottom)) / 2;
  };
  const draw = () => {
    image.draw(view);
    name();
  };
  const again = () => requestAnimationFrame(() => signal.aborted || draw());
  const pixel = (at) => [(found.x[at] * view.scale + view.dx) / devicePixelRatio, (found.y[at] * view.scale + view.dy) / devicePixelRatio];

  // The names of the nodes that are linked most, as far as they have room, and of the one below the pointer.
  function name() {
    const taken = [];
    const seen = [];
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    for (const at of most) {
      const [x, y] = pixel(at);
      if (x >= 0 && y >= 0 && x <= width && y <= height && seen.push(at) === 4 * LABELS) break;
    }
    const named = [...(over < 0 ? [] : [over]), ...seen].filter((at) => {
      const [x, y] = pixel(at);
      const free = at === over || (taken.length < LABELS && taken.every(([left, top]) => Math.abs(left - x) > 130 || Math.abs(top - y) > 18));
      if (free) taken.push([x, y]);
      return free && (at !== over || taken.length === 1);
    });
    fill(labels, named.map((at) => el("span", { class: at === over ? "over" : "", style: { left: `${pixel(at)[0] + 8}px`, top: `${pixel(at)[1] - 10}px` } }, words(found.titles[at].slice(0, 40)))));
  }

  function nearest(x, y) {
    let [best, far] = [-1, 14 ** 2];
    for (const at of nodes) {
      const [left, top] = pixel(at);
      const distance = (left - x) ** 2 + (top - y) ** 2;
      if (distance < far) [best, far] = [at, distance];
    }
    return best;
  }

  function zoom(by, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    const [left, top] = [x * devicePixelRatio, y * devicePixelRatio];
    view.scale *= by;
    view.dx = left - (left - view.dx) * by;
    view.dy = top - (top - view.dy) * by;
    again();
  }

  const pointers = new Map();
  let moved = 0;
  const on = (event, act, options = {}) => canvas.addEventListener(event, act, { signal, ...options });
  on("wheel", (event) => (event.preventDefault(), zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.offsetX, event.offsetY)), { passive: false });
  on("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    moved = 0;
  });
  on("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    const now = [event.offsetX, event.offsetY];
    if (!before) {
      const at = nearest(...now);
      canvas.classList.toggle("over", at >= 0);
      if (at !== over) over = at, again();
      return;
    }
    const others = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    pointers.set(event.pointerId, now);
    moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
    if (others) {
      const length = ([x, y]) => Math.hypot(x - others[0], y - others[1]) || 1;
      return zoom(length(now) / length(before), ...others);
    }
    view.dx += (now[0] - before[0]) * devicePixelRatio;
    view.dy += (now[1] - before[1]) * devicePixelRatio;
    again();
  });
  on("pointerup", (event) => {
    pointers.delete(event.pointerId);
    const at = moved < 5 ? nearest(event.offsetX, event.offsetY) : -1;
    if (at >= 0) go(leads(found, at));
  });
  on("pointercancel", (event) => pointers.delete(event.pointerId));
  on("keydown", (event) => {
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (moves) (view.dx += moves[0] * devicePixelRatio), (view.dy += moves[1] * devicePixelRatio), again();
    else if (event.key === "+") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
    else if (event.key === "0") whole(), again();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  new ResizeObserver(() => signal.aborted || (whole(), draw())).observe(canvas);
  whole();
  draw();
  canvas.dataset.drawn = nodes.length;
}
