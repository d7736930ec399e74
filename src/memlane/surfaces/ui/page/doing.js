// What was done, in a line, with the way back.

import { post } from "./api.js";
import { say } from "./dom.js";

// `answer` is what a change was answered with; `then` is called when it was taken back.
export function done(text, { changes = [] }, then = () => {}) {
  if (!changes.length) return say(text);
  say(text, async () => {
    try {
      const { conflicts } = await post("undo", { changes });
      say(conflicts.length ? `Not all of it: ${conflicts.map(({ path, why }) => `${path} ${why}`).join("; ")}.` : "It is as it was before.");
      then();
    } catch (error) {
      say(error.message);
    }
  });
}
