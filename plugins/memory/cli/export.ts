import { writeFile } from 'node:fs/promises'
import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { agentIdOf, fileFailure } from './agent.ts'

const Exported = v.looseObject({ agent_id: v.string(), count: v.number(), memories: v.array(v.unknown()) })

export default defineCommand({
  description: 'Write the memories of an agent as JSON, to a new file or to the output.',
  args: {
    agent: { type: 'positional', required: true, description: 'Name or id of the agent' },
    file: { type: 'string', description: 'File to make; the output without it', valueHint: 'memories.json' },
    ...clientArgs,
  },
  examples: [['svc memory export assistant --file memories.json', 'into a file']],
  async run(args) {
    const exported = await callDaemon(await connect(args), async (client) =>
      client.call('GET', `/api/memory/agents/${await agentIdOf(client, args.agent)}/export`, Exported),
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
    else print(`${exported.count} memories are in ${args.file}.`)
    return exits.ok
  },
})
