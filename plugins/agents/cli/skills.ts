import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  exits,
  Failure,
  findNearest,
  note,
  print,
  printJson,
  suggest,
} from 'svc/cli'
import type { DaemonClient } from 'svc/cli'
import { requireAgent } from './client.ts'

const names = v.array(v.string())
const Assigned = v.looseObject({
  assigned: names,
  available: names,
  mode: v.picklist(['all', 'allowlist', 'none']),
})
type Assigned = v.InferOutput<typeof Assigned>
const Tools = v.looseObject({ effective: names })
/** Without it an agent is told of no skill. */
const NEEDED = 'skill_describe'

type Change = { readonly skills: readonly string[] } | { readonly mode: 'all' | 'none' }
const CHANGES: Readonly<Record<string, (now: Assigned, named: readonly string[]) => Change>> = {
  add({ mode, assigned }, named) {
    if (mode === 'all') return { mode }
    return { skills: [...new Set([...(mode === 'none' ? [] : assigned), ...named])] }
  },
  remove({ mode, assigned, available }, named) {
    const has = mode === 'all' ? available : mode === 'none' ? [] : assigned
    const absent = named.find((name) => !has.includes(name))
    if (absent !== undefined)
      throw new Failure(exits.notFound, `the agent has no skill "${absent}"${suggest(findNearest(absent, has))}`)
    const skills = has.filter((name) => !named.includes(name))
    // An empty list means all.
    return skills.length === 0 ? { mode: 'none' } : { skills }
  },
  set(_, named) {
    const [only] = named
    return named.length === 1 && (only === 'all' || only === 'none') ? { mode: only } : { skills: named }
  },
}
const ACTIONS = ['list', ...Object.keys(CHANGES)]

export default defineCommand({
  description: 'Show or change which skills an agent has.',
  args: {
    agent: { type: 'positional', required: true, description: 'Name or id of the agent' },
    action: { type: 'positional', required: false, description: 'list (default), add, remove or set' },
    skills: {
      type: 'positional',
      required: false,
      description: 'Names, separated by commas; for set also all or none',
    },
    ...clientArgs,
  },
  examples: [
    ['svc agent skills ada', 'which it has'],
    ['svc agent skills ada add git-expert,sql-analyst', 'two more'],
    ['svc agent skills ada remove sql-analyst', 'one less'],
    ['svc agent skills ada set all', 'all there are'],
  ],
  async run({ agent: wanted, action = 'list', skills = '', ...args }) {
    const named = skills.split(',').flatMap((name) => name.trim() || [])
    const change = CHANGES[action]
    if (!ACTIONS.includes(action))
      throw new Failure(
        exits.usage,
        `there is no action "${action}"${suggest(findNearest(action, ACTIONS))}`,
        `it is one of ${ACTIONS.join(', ')}`,
      )
    if (change ? named.length === 0 : named.length > 0)
      throw new Failure(exits.usage, change ? `${action} needs names of skills` : 'list takes no names')
    const { agent, result, hasTool } = await callDaemon(await connect(args), async (client) => {
      const { id, name } = await requireAgent(client, wanted)
      const path = `/api/agents/${id}/skills`
      const now = await client.call('GET', path, Assigned)
      if (!change) return { agent: name, result: now, hasTool: await mayRead(client, id) }
      const body = change(now, named)
      return {
        agent: name,
        result: await client.call('PUT', path, Assigned, { body }),
        hasTool: await mayRead(client, id),
      }
    })
    if (!hasTool && result.mode !== 'none')
      note(`svc: warning: agent "${agent}" may not use the tool ${NEEDED}, so that no skill has an effect`)
    if (args.json) printJson(result)
    else print(describe(agent, result))
    return exits.ok
  },
})

async function mayRead(client: DaemonClient, id: string): Promise<boolean> {
  return (await client.call('GET', `/api/agents/${id}/tools`, Tools)).effective.includes(NEEDED)
}
function describe(agent: string, { mode, assigned, available }: Assigned): string {
  if (mode === 'none') return `agent "${agent}" has no skills`
  if (mode === 'all')
    return `agent "${agent}" has all ${available.length} skills; ${commandLine('skill list')} names them`
  return [
    `agent "${agent}" has ${assigned.length === 1 ? 'one skill' : `${assigned.length} skills`}:`,
    ...assigned,
  ].join('\n')
}
