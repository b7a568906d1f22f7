import * as v from 'valibot'
import { callDaemon, clientArgs, connect, escapeControls, exits, omitUndefined, print, printJson } from 'svc/cli'
import type { ClientArgs, DaemonCall, DaemonClient } from 'svc/cli'
import { requireAgent } from '../../agents/cli/client.ts'

const Made = v.looseObject({
  message: v.string(),
  files: v.array(v.string()),
  text: v.optional(v.string()),
})

export const mediaArgs = {
  agent: {
    type: 'string',
    alias: 'a',
    valueHint: 'agent',
    description: 'Name or id of the agent that pays for it and gets the files (default: assistant)',
  },
  key: {
    type: 'string',
    valueHint: 'text',
    description: 'The same command with the same key, within 24 hours, makes and pays for nothing again',
  },
  ...clientArgs,
} as const

interface MakeArgs extends ClientArgs {
  readonly agent?: string | undefined
  readonly key?: string | undefined
  readonly json?: boolean | undefined
}
/** Has something made, and prints what was made. `describe`: what is asked for; `call` is for requests that belong to it. */
export async function make(
  args: MakeArgs,
  what: 'images' | 'speech' | 'transcriptions',
  describe: (client: DaemonClient, agentId: string, call: DaemonCall) => Promise<Readonly<Record<string, unknown>>>,
): Promise<number> {
  const call: DaemonCall = {
    timeoutMs: 0,
    ...(args.key !== undefined && { headers: { 'idempotency-key': args.key } }),
  }
  const made = await callDaemon(await connect(args), async (client) => {
    const { id } = await requireAgent(client, args.agent)
    const body = { agent_id: id, ...omitUndefined(await describe(client, id, call)) }
    return client.call('POST', `/api/media/${what}`, Made, { ...call, body })
  })
  if (args.json) printJson(made)
  else print(escapeControls(made.message, true))
  return exits.ok
}
