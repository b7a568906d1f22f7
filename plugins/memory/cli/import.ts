import { readFile } from 'node:fs/promises'
import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { readJson } from 'svc/sdk'
import { agentIdOf, fileFailure } from './agent.ts'

const Imported = v.looseObject({ imported: v.number(), agent_id: v.string() })

export default defineCommand({
  description: 'Add memories from a file to an agent. The same file again adds nothing.',
  args: {
    agent: { type: 'positional', required: true, description: 'Name or id of the agent' },
    file: { type: 'positional', required: true, description: 'An export, or a JSON array of memories' },
    ...clientArgs,
  },
  examples: [['svc memory import assistant memories.json', 'what another agent exported']],
  async run(args) {
    const body = await readBody(args.file)
    const answer = await callDaemon(await connect(args), async (client) =>
      client.call('POST', `/api/memory/agents/${await agentIdOf(client, args.agent)}/import`, Imported, { body }),
    )
    if (args.json) printJson(answer)
    else print(`${answer.imported} memories are imported.`)
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
