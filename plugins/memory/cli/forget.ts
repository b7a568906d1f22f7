import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  confirm,
  connect,
  defineCommand,
  exits,
  Failure,
  print,
  printJson,
} from 'svc/cli'
import type { DaemonClient } from 'svc/cli'
import { agentIdOf } from './agent.ts'
import { memoriesAre } from './memory.ts'

const One = v.looseObject({ memory_id: v.string() })
const All = v.looseObject({ deleted: v.number() })

export default defineCommand({
  description:
    'Delete a memory for good, with its history; its id and who deleted it stay. Or everything of a person or an agent.',
  args: {
    id: { type: 'positional', required: false, description: 'Id of the memory' },
    user: { type: 'string', description: 'Everything that is kept for this person, in all agents', valueHint: 'id' },
    agent: { type: 'string', description: 'Everything of this agent, its notes too', valueHint: 'name' },
    level: { type: 'string', description: 'With --agent: only user, session or agent', valueHint: 'level' },
    yes: { type: 'boolean', alias: 'y', description: 'Without asking' },
    ...clientArgs,
  },
  examples: [
    ['svc memory forget 0190c9a4-6c1e-7f3a-9b7e-2f6f8d7a1c11', 'one memory'],
    ['svc memory forget --user telegram:1234', 'a person; svc memory users shows the ids'],
    ['svc memory forget --agent assistant --level session', 'what an agent kept of sessions'],
  ],
  async run({ id, user, agent, level, yes, ...args }) {
    const named = [id, user, agent].filter((one) => one !== undefined)
    if (named.length !== 1)
      throw new Failure(
        exits.usage,
        'name one: the id of a memory, --user or --agent',
        `${commandLine('memory list')} shows the ids`,
      )
    if (level !== undefined && agent === undefined)
      throw new Failure(exits.usage, '--level says what of an agent', 'add --agent')
    const whose = user === undefined ? `agent "${agent}"` : `person "${user}"`
    if (id === undefined && !yes)
      await ask(`${level === undefined ? 'everything' : `level ${level}`} of ${whose}`, args)
    const answer = await callDaemon(await connect(args), async (client) => {
      if (id !== undefined) return client.call('DELETE', `/api/memory/items/${encodeURIComponent(id)}`, One)
      return client.call('DELETE', await placeOf(client, { user, agent, level }), All)
    })
    if (args.json) printJson(answer)
    else if (v.is(All, answer)) print(`${memoriesAre(answer.deleted)} forgotten.`)
    else print(`Memory ${answer.memory_id} is forgotten.`)
    return exits.ok
  },
})

interface Whose {
  readonly user: string | undefined
  readonly agent: string | undefined
  readonly level: string | undefined
}
async function placeOf(client: DaemonClient, { user, agent = '', level }: Whose): Promise<string> {
  if (user !== undefined) return `/api/memory/user/${encodeURIComponent(user)}`
  const place = `/api/memory/agents/${await agentIdOf(client, agent)}`
  return level === undefined ? place : `${place}/level/${encodeURIComponent(level)}`
}
async function ask(what: string, { json }: { readonly json?: boolean | undefined }): Promise<void> {
  const isSure = await confirm(`Delete ${what} for good? [y/N] `, json === true)
  if (isSure === undefined)
    throw new Failure(exits.refused, 'nothing is deleted: nobody was there to confirm', 'add --yes')
  if (!isSure) throw new Failure(exits.refused, 'nothing is deleted')
}
