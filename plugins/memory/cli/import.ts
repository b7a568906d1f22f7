import { readFile } from 'node:fs/promises'
import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, Failure, print, printJson } from 'svc/cli'
import { readJson } from 'svc/sdk'
import { agentIdOf, fileFailure } from './agent.ts'
import { memories, memoriesAre } from './memory.ts'

const Imported = v.looseObject({
  imported: v.number(),
  agent_id: v.string(),
  unchanged: v.optional(v.number(), 0),
  conflicts: v.optional(v.array(v.looseObject({ id: v.string(), reason: v.string() })), []),
})

export default defineCommand({
  description: 'Add memories from a file to an agent. The same file again adds nothing.',
  args: {
    agent: { type: 'positional', required: true, description: 'Name or id of the agent' },
    file: { type: 'positional', required: true, description: 'An export, or a JSON array of memories' },
    restore: { type: 'boolean', description: 'As a backup: with ids, sources, times, uses and history' },
    'dry-run': { type: 'boolean', description: 'With --restore: only say what would come back' },
    ...clientArgs,
  },
  examples: [
    ['svc memory import assistant memories.json', 'what another agent exported'],
    ['svc memory import assistant memories.json --restore', 'what this agent had'],
  ],
  async run(args) {
    const isDryRun = args['dry-run'] === true
    if (isDryRun && !args.restore)
      throw new Failure(exits.usage, '--dry-run is for --restore', `add --restore, or leave --dry-run out`)
    const file = await readBody(args.file)
    const body = args.restore ? { ...asBackup(args.file, file), restore: true, dry_run: isDryRun } : file
    const answer = await callDaemon(await connect(args), async (client) =>
      client.call('POST', `/api/memory/agents/${await agentIdOf(client, args.agent)}/import`, Imported, { body }),
    )
    if (args.json) printJson(answer)
    else if (args.restore) {
      const restored = isDryRun ? `${memories(answer.imported)} would be` : memoriesAre(answer.imported)
      print(
        `${restored} restored, ${answer.unchanged} of the file ${answer.unchanged === 1 ? 'is' : 'are'} there already.`,
      )
      for (const { id, reason } of answer.conflicts) print(`Left out: memory ${id}: ${reason}`)
    } else print(`${memoriesAre(answer.imported)} imported.`)
    return exits.ok
  },
})

async function readBody(file: string): Promise<unknown> {
  try {
    return readJson(await readFile(file, 'utf8'))
  } catch (error) {
    throw fileFailure(file, error)
  }
}

/** A list of memories has neither ids nor a history. */
function asBackup(name: string, file: unknown): object {
  if (v.is(v.looseObject({ memories: v.array(v.unknown()) }), file)) return file
  throw new Failure(exits.failed, `${name} is no export of an agent`, 'leave out --restore to add what is in it')
}
