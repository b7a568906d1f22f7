import * as v from 'valibot'
import { commandLine, escapeControls, exits, Failure } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

const text = v.string()
const Requirement = v.looseObject({
  key: text,
  label: text,
  satisfied: v.boolean(),
  optional: v.boolean(),
  description: v.optional(text, ''),
})
export type Requirement = v.InferOutput<typeof Requirement>
const Hand = v.looseObject({
  id: text,
  name: text,
  description: text,
  category: text,
  active: v.boolean(),
  requirements_met: v.boolean(),
  requirements: v.array(Requirement),
})
export const HandList = v.looseObject({
  hands: v.array(Hand),
  problems: v.array(v.looseObject({ path: text, error: text })),
})
export const Instance = v.looseObject({
  instance_id: text,
  hand_id: text,
  instance_name: text,
  status: text,
  agent_id: text,
  agent_name: text,
  lacks: v.optional(v.array(text), []),
  agents: v.optional(v.array(v.looseObject({ role: text, agent_name: text })), []),
  schedule_id: text,
  next_run: v.nullable(text),
})
export type Instance = v.InferOutput<typeof Instance>
export const InstanceList = v.looseObject({ instances: v.array(Instance), total: v.number() })
export const Dependencies = v.looseObject({ requirements_met: v.boolean(), requirements: v.array(Requirement) })

export const handArgs = {
  hand: { type: 'positional', required: true, description: 'Id of the hand' },
} as const
export const instanceArgs = {
  instance: {
    type: 'positional',
    required: true,
    description: 'The hand, where it has one instance; <hand>/<instance>; or an id',
  },
} as const

/** An instance by its id, by the id of its hand, or by both names with a slash. Throws a `Failure`. */
export async function requireInstance(client: DaemonClient, reference: string): Promise<Instance> {
  const { instances } = await client.call('GET', '/api/hands/active', InstanceList)
  const [hand = '', name] = reference.split('/')
  const byId = instances.filter(
    ({ instance_id: id }) => id.startsWith(reference.toLowerCase()) && reference.length >= 8,
  )
  const byHand = instances.filter((one) => one.hand_id === hand && (name === undefined || one.instance_name === name))
  const found = byHand.length > 0 ? byHand : byId
  if (found[0] && found.length === 1) return found[0]
  if (found.length > 1)
    throw new Failure(
      exits.usage,
      `"${reference}" is ${found.length} instances`,
      `name one: ${found.map((one) => `${one.hand_id}/${one.instance_name}`).join(', ')}`,
    )
  throw new Failure(
    exits.notFound,
    `there is no instance "${reference}"`,
    `${commandLine('hand list --active')} shows those there are`,
  )
}

/** `key=value` for each setting, separated by semicolons. Throws a `Failure`. */
export function readValues(text: string | undefined): Readonly<Record<string, string>> {
  const pairs = (text ?? '').split(';').filter((pair) => pair.trim() !== '')
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      if (at < 1) throw new Failure(exits.usage, `"${pair.trim()}" is no setting`, 'write it as key=value')
      return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
    }),
  )
}

export const nameOf = ({ hand_id: hand, instance_name: name }: Instance): string => escapeControls(`${hand}/${name}`)
/** The coordinator first. */
export const agentsOf = ({ agent_name: name, agents }: Instance): string =>
  escapeControls(agents.length > 1 ? agents.map((one) => one.agent_name).join(', ') : name)
export const timeOf = (time: string | null): string =>
  time === null ? '' : `${time.slice(0, 16).replace('T', ' ')} UTC`
/** A line for each requirement. */
export const describeNeeds = (requirements: readonly Requirement[]): string =>
  requirements
    .map(({ label, satisfied, optional, description }) => {
      const state = satisfied ? 'ok     ' : optional ? 'absent ' : 'missing'
      return escapeControls(`${state}  ${label}${satisfied || description === '' ? '' : `: ${description}`}`)
    })
    .join('\n')
