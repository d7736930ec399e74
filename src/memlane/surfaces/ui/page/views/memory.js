// One memory, whole.

import { get } from "../api.js";
import { chip, el, fill, tree, when, words } from "../dom.js";

export const title = "Memory";

export async function show(page, { path, signal, live }) {
  const refresh = async () => {
    const memory = await get("memory", { id: path }, signal);
    document.title = `${memory.title} · memlane`;
    fill(page, article(memory));
  };
  await refresh();
  live(({ memories }) => (memories.includes(path) || memories.includes("*")) && refresh().catch(() => {}));
}

function article(memory) {
  return el(
    "article",
    {},
    el("h1", {}, words(memory.title || memory.id)),
    el("p", { class: "facts" }, el("code", {}, words(memory.id)), when(memory.created_at), memory.type && chip(memory.type), memory.tags.map((tag) => el("a", { class: "chip", href: `/search?tag=${encodeURIComponent(tag)}` }, "#", words(tag)))),
    el("div", { class: "text", dir: "auto" }, tree(memory.body)),
    el("p", { class: "muted path" }, words(memory.path)),
  );
}
