// Each event is handed to `memlane hook opencode`, which never fails and never takes long. What comes back is JSON:
// {"hookSpecificOutput": {"additionalContext": "…"}} is context, {"decision": "block", "reason": "…"} is a question
// for the agent. A session ends here when another one begins, when it is deleted, and when opencode does.
import { spawn } from "node:child_process"

const MEMLANE = "{command}"
const PATIENCE = 5000 // milliseconds
const LONGEST = 2000 // characters of what a tool was told or answered
const ALONE = process.argv[2] === "run" // it ends with the turn, so that nobody can be asked anything afterwards
const TOOLS = new Set(["edit", "write", "patch", "multiedit", "apply_patch", "bash"])

function ask(event, payload) {
  return new Promise((resolve) => {
    const child = spawn(MEMLANE, ["hook", "opencode", event], { cwd: payload.cwd, stdio: ["pipe", "pipe", "ignore"] })
    const late = setTimeout(() => child.kill(), PATIENCE)
    let out = ""
    child.stdout.on("data", (piece) => (out += piece))
    child.stdin.on("error", () => {})
    child.on("error", () => resolve({}))
    child.on("close", () => {
      clearTimeout(late)
      try {
        resolve(JSON.parse(out))
      } catch {
        resolve({})
      }
    })
    child.stdin.end(JSON.stringify(payload))
  })
}

const contextOf = (answer) => answer.hookSpecificOutput?.additionalContext ?? ""

const textOf = (parts) =>
  parts
    .filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
    .map((part) => part.text)
    .join("\n")

const cut = (value) => (typeof value === "string" ? value.slice(0, LONGEST) : value)

function shortened({ info, parts }) {
  const { id, sessionID, role, time, path } = info
  return {
    info: { id, sessionID, role, time, path, summary: info.summary === true },
    parts: parts
      .filter((part) => part.type === "text" || part.type === "tool")
      .map(({ type, text, synthetic, ignored, tool, callID, state }) => {
        if (type === "text") return { type, text, synthetic, ignored }
        const input = Object.fromEntries(Object.entries(state?.input ?? {}).map(([key, value]) => [key, cut(value)]))
        const { status, output, error } = state ?? {}
        return { type, tool, callID, state: { status, input, output: cut(output), error: cut(error) } }
      }),
  }
}

export const Memlane = async ({ client, directory }) => {
  const snapshots = new Map() // session → what to say at its start
  const relevant = new Map() // session → what belongs to its last prompt
  const calls = new Map() // call of a tool → what it was given
  const models = new Map() // session → the model that its last prompt is for
  const open = new Set() // sessions in which something was said since they were last handed over as ended

  const payload = (event, session, more) => ({
    hook_event_name: event,
    session_id: session,
    cwd: directory,
    last_turn: ALONE,
    ...more,
  })

  async function capture(event, session) {
    const answer = await client.session.messages({ path: { id: session } })
    const messages = (answer.data ?? []).map(shortened).filter(({ parts }) => parts.length)
    return ask(event, payload(event, session, { messages }))
  }

  async function end(session) {
    if (open.delete(session)) await capture("session-end", session)
  }

  return {
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.deleted") open.delete(session)
      if (event.type !== "session.idle") return
      const { reason } = await capture("stop", session)
      if (!reason) return
      await client.session.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text: reason }] } })
    },
    "chat.message": async (input, output) => {
      const session = input.sessionID
      models.set(session, output.message?.model?.modelID)
      await Promise.all([...open].filter((other) => other !== session).map(end))
      open.add(session)
      if (!snapshots.has(session)) {
        const start = await ask("session-start", payload("session-start", session, { source: "startup" }))
        snapshots.set(session, contextOf(start))
      }
      const prompt = textOf(output.parts)
      relevant.set(session, prompt ? contextOf(await ask("prompt", payload("prompt", session, { prompt }))) : "")
    },
    "tool.execute.before": async (input, output) => {
      if (TOOLS.has(input.tool)) calls.set(input.callID, output.args)
    },
    "tool.execute.after": async (input, output) => {
      const given = calls.get(input.callID)
      calls.delete(input.callID)
      if (!given) return
      const call = { tool_name: input.tool, tool_input: given }
      const context = contextOf(await ask("tool", payload("tool", input.sessionID, call)))
      if (context) output.output = `${output.output ?? ""}\n\n${context}`
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
    dispose: async () => {
      await Promise.all([...open].map(end))
    },
  }
}
