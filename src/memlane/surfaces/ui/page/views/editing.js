// Editing a memory in its place. What is typed is never lost: it stays until it is saved or given up, also while other
// pages are looked at; and where somebody else has saved meanwhile, both texts are shown.

import { get, post } from "../api.js";
import { el, fill, problem, words } from "../dom.js";

const drafts = new Map(); // id -> { text, base, opened, other, whole }

export const isEdited = (id) => drafts.has(id);

window.addEventListener("beforeunload", (event) => {
  if ([...drafts.values()].some(({ text, base }) => text !== base)) event.preventDefault();
});

// Fill a place with the editor of a memory; `left(said, answer)` is called when it was saved or given up.
export async function editor(place, id, left) {
  if (!drafts.has(id)) {
    const { text, opened, whole } = await get("opened", { id });
    drafts.set(id, { text, base: text, opened, whole, other: null });
  }
  const draft = drafts.get(id);
  const trouble = el("div");
  const area = el("textarea", { id: "edited", value: draft.text, spellcheck: "true", dir: "auto", oninput: () => (draft.text = area.value) });
  area.rows = Math.min(30, Math.max(8, draft.text.split("\n").length + 1));
  const other = el("div");
  const submit = el("button", { class: "main" });

  const show = () => {
    submit.textContent = draft.other === null ? "Save" : "Save this over it";
    fill(other, draft.other !== null && theirs());
  };
  const theirs = () => el(
    "section",
    { class: "card other", "aria-label": "The other text" },
    el("h3", {}, draft.swapped ? "What you had written" : "What is there now"),
    el("pre", { tabindex: "0" }, words(draft.other)),
    el("button", { type: "button", onclick: swap }, draft.swapped ? "Go on with what I had written" : "Go on with what is there now"),
  );
  const swap = () => {
    [draft.text, draft.other] = [draft.other, draft.text];
    draft.swapped = !draft.swapped;
    area.value = draft.text;
    show();
    area.focus();
  };
  const save = async () => {
    submit.disabled = true;
    try {
      const answer = await post("save", { id, text: draft.text, opened: draft.opened });
      drafts.delete(id);
      await left(["Saved", ...answer.remarks].join(" · "), answer);
    } catch (error) {
      if (error.code === "conflict") await meet();
      fill(trouble, problem(error), error.code === "not_found" && el("p", {}, el("button", { type: "button", onclick: revive }, "Bring it back, and save")));
      trouble.scrollIntoView({ block: "nearest" });
    } finally {
      submit.disabled = false;
    }
  };
  // Somebody has deleted it meanwhile: what is brought back is what was edited, or else both texts are shown.
  const revive = async () => {
    try {
      await post("restore", { id });
      fill(trouble);
      await save();
    } catch (error) {
      fill(trouble, problem(error));
    }
  };
  const meet = async () => {
    const { text, opened } = await get("opened", { id }).catch(() => ({ text: "", opened: "" }));
    Object.assign(draft, { other: text, opened, swapped: false });
    show();
  };
  const leave = () => {
    drafts.delete(id);
    left();
  };
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
  });
  show();
  fill(
    place,
    el(
      "form",
      { class: "editor", onsubmit: (event) => (event.preventDefault(), save()) },
      trouble,
      el("label", { for: "edited" }, draft.whole ? "The whole file, with what is noted at its top" : "The text"),
      area,
      other,
      el(
        "div",
        { class: "toolbar" },
        submit,
        el("button", { type: "button", onclick: leave }, "Give up the changes"),
        el("span", { class: "muted" }, "Ctrl+Enter saves"),
      ),
    ),
  );
  area.focus();
}
