import * as v from 'valibot'
import { clientArgs, exits, Failure } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

export const Trigger = v.looseObject({
  id: v.string(),
  agent_id: v.string(),
  pattern: v.record(v.string(), v.record(v.string(), v.string())),
  prompt_template: v.string(),
  enabled: v.boolean(),
  fire_count: v.number(),
  max_fires: v.number(),
  cooldown_secs: v.nullable(v.number()),
  workflow_id: v.nullable(v.string()),
  reason: v.nullable(v.string()),
  last_fired: v.nullable(v.string()),
  delivery_targets: v.array(v.looseObject({ kind: v.string() })),
})
export type Trigger = v.InferOutput<typeof Trigger>

export const listTriggers = (client: DaemonClient): Promise<readonly Trigger[]> =>
  client.call('GET', '/api/triggers', v.array(Trigger))

export async function namesOfAgents(client: DaemonClient): Promise<ReadonlyMap<string, string>> {
  const agents = await client.call('GET', '/api/agents', v.array(v.looseObject({ id: v.string(), name: v.string() })))
  return new Map(agents.map(({ id, name }) => [id, name]))
}

/** A trigger by its id or the beginning of it. Throws a `Failure` that names those there are. */
export async function requireTrigger(client: DaemonClient, text: string): Promise<Trigger> {
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text))
    return client.call('GET', `/api/triggers/${text}`, Trigger)
  const all = await listTriggers(client)
  const found = all.filter(({ id }) => text !== '' && id.startsWith(text.toLowerCase()))
  if (found[0] && found.length === 1) return found[0]
  const ids = (found.length > 1 ? found : all).map(({ id }) => id).join(', ')
  if (found.length > 1) throw new Failure(exits.usage, `"${text}" is ${found.length} triggers`, `give an id: ${ids}`)
  throw new Failure(
    exits.notFound,
    `there is no trigger "${text}"`,
    all.length === 0 ? 'there are none' : `there are: ${ids}`,
  )
}

/** `agent_spawned scout-*`. */
export function patternOf({ pattern }: Pick<Trigger, 'pattern'>): string {
  return Object.entries(pattern)
    .map(([name, fields]) => [name, ...Object.values(fields)].join(' '))
    .join(', ')
}
export const firesOf = ({ fire_count: count, max_fires: max }: Trigger): string =>
  max === 0 ? String(count) : `${count} of ${max}`
export const triggerArgs = {
  trigger: { type: 'positional', required: true, description: 'Id of the trigger, or the beginning of it' },
  ...clientArgs,
} as const
