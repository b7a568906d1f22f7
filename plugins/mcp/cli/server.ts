import * as v from 'valibot'
import { clientArgs } from 'svc/cli'

const text = v.nullable(v.string())
export const Tool = v.looseObject({
  name: v.string(),
  description: v.string(),
  risk: v.string(),
  usable: v.boolean(),
  reason: text,
})
export const Server = v.looseObject({
  name: v.string(),
  transport: v.string(),
  command: text,
  args: v.array(v.string()),
  url: text,
  headers: v.array(v.string()),
  env: v.array(v.string()),
  network: v.array(v.string()),
  origin: v.string(),
  trust: v.string(),
  state: v.string(),
  lazy: v.boolean(),
  error: text,
  protocol_version: text,
  pid: v.nullable(v.number()),
  restarts: v.number(),
  calls: v.number(),
  failed_calls: v.number(),
  connected_since: text,
  tools: v.array(Tool),
})
export type Server = v.InferOutput<typeof Server>

export const serverArgs = {
  name: { type: 'positional', required: true, description: 'Name of the server' },
  ...clientArgs,
} as const
export const path = '/api/mcp/servers'
export const pathOf = (name: string): string => `${path}/${encodeURIComponent(name)}`
export const addressOf = ({ command, args, url }: Server): string => url ?? [command ?? '', ...args].join(' ')
/** A program that waits for its first or next use is idle: nothing is wrong with it. */
export const shownState = ({ state, error, lazy, transport }: Server): string =>
  state === 'disconnected' && error === null && lazy && transport === 'stdio' ? 'idle' : state
export const usableTools = ({ tools }: Server): number => tools.filter(({ usable }) => usable).length
