// Where a [[target]] of a memory leads: to the memory of that name, or to what links to a file or a name of nothing yet.

import { get } from "../api.js";
import { address, el, empty, fill, line, words } from "../dom.js";

export const title = "Linked";

export async function show(page, { path, signal, live, go }) {
  const refresh = async () => {
    const found = await get("to", { target: path }, signal);
    if (found.id) return go(address(found.id), { replace: true });
    const what = found.file ? "A file of the project." : "No memory has this name.";
    fill(page, el("h1", {}, words(path)), el("p", { class: "muted" }, what), near(found), linked(found));
  };
  await refresh();
  live(() => refresh().catch(() => {}));
}

function near({ near: ids }) {
  const links = ids.map((id, at) => [at > 0 && ", ", el("a", { href: address(id) }, words(id))]);
  return ids.length > 0 && el("p", {}, "Did you mean ", links, "?");
}

function linked({ links }) {
  if (!links.length) return empty("Nothing links to it.", "A memory that says [[its name]] does.");
  return [el("h2", {}, "What links to it"), el("ul", { class: "memories" }, links.map((memory) => line(memory)))];
}
