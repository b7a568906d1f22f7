import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { ClientSettings } from './config.ts'
import type { LazyRuntime } from './runtime.ts'

/** Security facts 1.2: what is written there leaves the daemon, and another agent wrote what is read. */
const written = { refuses: ['Secret'] } as const
const outside = { labels: ['UntrustedAgent', 'ExternalNetwork'] } as const
const name = v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(2_048))

/** Beyond the wait for the answer: a card that is read again, and the writing. */
const SPARE_SECS = 40

export interface ToolDeps {
  readonly agents: Agents
  readonly settings: Pick<ClientSettings, 'send_wait_secs' | 'message_max_chars'>
  readonly runtime: LazyRuntime
}

export function clientTools(deps: ToolDeps): readonly AnyTool[] {
  return [discoverTool(deps), sendTool(deps), statusTool(deps)]
}
const load = async ({ runtime }: ToolDeps) => {
  const [opened, calls] = await Promise.all([runtime(), import('./tool-calls.ts')])
  return { opened, ...calls }
}

function discoverTool(deps: ToolDeps): AnyTool {
  return defineTool({
    ...written,
    ...outside,
    name: 'a2a_discover',
    risk: 'write',
    description:
      'Look at the card of an agent on another system by its address: what it can do and how it is reached. ' +
      'A person has to trust it before you can send to it. Its host must be in your network permissions.',
    input: v.object({ url: v.pipe(name, v.description('Such as https://agents.example.com')) }),
    async run({ url }, call) {
      const { opened, discover } = await load(deps)
      return discover(opened, deps.agents, url, call)
    },
  })
}

function sendTool(deps: ToolDeps): AnyTool {
  const { send_wait_secs: secs, message_max_chars: max } = deps.settings
  return defineTool({
    ...written,
    ...outside,
    name: 'a2a_send',
    risk: 'execute',
    timeoutSecs: secs + SPARE_SECS,
    description:
      'Send a message to a trusted agent on another system and wait for its answer. Give agent_url or agent_name. ' +
      'session_id continues a conversation. A task that takes longer is answered with its id for a2a_status.',
    input: v.object({
      message: v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(max)),
      agent_url: v.optional(name),
      agent_name: v.optional(name),
      session_id: v.optional(v.pipe(v.string(), v.maxLength(512))),
      task_id: v.optional(v.pipe(v.string(), v.maxLength(512), v.description('A task there that waits for you.'))),
    }),
    assess: ({ agent_name: called, agent_url: url }) => ({
      intent: `send a message to the agent ${called ?? url ?? ''} on another system`,
    }),
    async run(input, call) {
      const { opened, send } = await load(deps)
      return send(opened, deps.agents, input, call)
    },
    async recover(_input, call) {
      const { opened, recoverSend } = await load(deps)
      return recoverSend(opened, call)
    },
  })
}

function statusTool(deps: ToolDeps): AnyTool {
  return defineTool({
    ...outside,
    name: 'a2a_status',
    risk: 'read',
    polls: true,
    description: 'How a task is that you sent with a2a_send, and its result.',
    input: v.object({ task_id: v.pipe(v.string(), v.nonEmpty(), v.maxLength(512)) }),
    async run({ task_id: id }, call) {
      const { opened, readStatus } = await load(deps)
      return readStatus(opened, id, call)
    },
  })
}
