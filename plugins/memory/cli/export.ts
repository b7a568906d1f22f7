import { writeFile } from 'node:fs/promises'
import * as v from 'valibot'
import { callDaemon, clientArgs, commandLine, connect, defineCommand, exits, Failure, print, printJson } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'
import { agentIdOf, fileFailure } from './agent.ts'
import { memoriesAre } from './memory.ts'

const Exported = v.looseObject({ count: v.number(), memories: v.array(v.unknown()) })

export default defineCommand({
  description: 'Write the memories of an agent, or those for a person, as JSON, to a new file or to the output.',
  args: {
    agent: { type: 'positional', required: false, description: 'Name or id of the agent' },
    user: { type: 'string', description: 'Instead: what all agents keep for this person', valueHint: 'id' },
    file: { type: 'string', description: 'File to make; the output without it', valueHint: 'memories.json' },
    ...clientArgs,
  },
  examples: [
    ['svc memory export assistant --file memories.json', 'into a file'],
    ['svc memory export --user telegram:1234', 'what is known of a person'],
  ],
  async run(args) {
    const { agent, user } = args
    if ((agent === undefined) === (user === undefined))
      throw new Failure(
        exits.usage,
        'name an agent, or a person with --user',
        `${commandLine('memory users')} shows the persons`,
      )
    const exported = await callDaemon(await connect(args), async (client) =>
      client.call('GET', `/api/memory/${await placeOf(client, agent, user)}/export`, Exported),
    )
    if (args.file === undefined) {
      printJson(exported)
      return exits.ok
    }
    // Private, and never over a file that is there.
    try {
      await writeFile(args.file, `${JSON.stringify(exported, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
    } catch (error) {
      throw fileFailure(args.file, error)
    }
    if (args.json) printJson({ file: args.file, count: exported.count })
    else print(`${memoriesAre(exported.count)} in ${args.file}.`)
    return exits.ok
  },
})

async function placeOf(client: DaemonClient, agent = '', user?: string): Promise<string> {
  return user === undefined ? `agents/${await agentIdOf(client, agent)}` : `user/${encodeURIComponent(user)}`
}
