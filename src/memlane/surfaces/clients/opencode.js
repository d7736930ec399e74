// Each event is handed to `memlane hook opencode`, which never fails and never takes long.
// Context comes back as JSON: {"hookSpecificOutput": {"additionalContext": "…"}}.
import { spawn } from "node:child_process"

const MEMLANE = "{command}"
const PATIENCE = 5000 // milliseconds

function ask(event, payload) {
  return new Promise((resolve) => {
    const child = spawn(MEMLANE, ["hook", "opencode", event], { cwd: payload.cwd, stdio: ["pipe", "pipe", "ignore"] })
    const late = setTimeout(() => child.kill(), PATIENCE)
    let out = ""
    child.stdout.on("data", (piece) => (out += piece))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve(""))
    child.on("close", () => {
      clearTimeout(late)
      try {
        resolve(JSON.parse(out).hookSpecificOutput?.additionalContext ?? "")
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify(payload))
  })
}

const textOf = (parts) =>
  parts
    .filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
    .map((part) => part.text)
    .join("\n")

export const Memlane = async ({ client, directory }) => {
  const snapshots = new Map() // session → what to say at its start
  const relevant = new Map() // session → what belongs to its last prompt
  const models = new Map() // session → the model that its last prompt is for

  const payload = (event, session, more) => ({ hook_event_name: event, session_id: session, cwd: directory, ...more })

  async function capture(event, session) {
    const answer = await client.session.messages({ path: { id: session } })
    const messages = (answer.data ?? []).map(({ info, parts }) => ({
      id: info.id,
      role: info.role,
      content: textOf(parts),
      timestamp: new Date(info.time?.completed ?? info.time?.created ?? Date.now()).toISOString(),
    }))
    await ask(event, payload(event, session, { messages: messages.filter((message) => message.content) }))
  }

  return {
    event: async ({ event }) => {
      if (event.type === "session.idle") await capture("stop", event.properties.sessionID)
    },
    "chat.message": async (input, output) => {
      const session = input.sessionID
      models.set(session, output.message?.model?.modelID)
      if (!snapshots.has(session)) {
        snapshots.set(session, await ask("session-start", payload("session-start", session, { source: "startup" })))
      }
      const prompt = textOf(output.parts)
      relevant.set(session, prompt ? await ask("prompt", payload("prompt", session, { prompt })) : "")
    },
    "experimental.chat.system.transform": async (input, output) => {
      const model = models.get(input.sessionID)
      if (model && input.model?.id && model !== input.model.id) return // a small one, asked for a title
      for (const context of [snapshots.get(input.sessionID), relevant.get(input.sessionID)]) {
        if (context) output.system.push(context)
      }
    },
    "experimental.session.compacting": async (input) => {
      await capture("pre-compact", input.sessionID)
    },
  }
}
