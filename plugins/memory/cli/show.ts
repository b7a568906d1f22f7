import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTime,
} from 'svc/cli'
import { agentNameOf } from './agent.ts'
import { Entry, sourceOf } from './memory.ts'

const Version = v.looseObject({ content: v.string(), written_at: v.string(), replaced_at: v.nullable(v.string()) })
const History = v.looseObject({ versions: v.array(Version) })

export default defineCommand({
  description: 'Show a memory, where it is known from and its history.',
  args: { id: { type: 'positional', required: true, description: 'Id of the memory' }, ...clientArgs },
  examples: [['svc memory show 0190c9a4-6c1e-7f3a-9b7e-2f6f8d7a1c11', 'with what it said before']],
  async run(args) {
    const path = `/api/memory/items/${encodeURIComponent(args.id)}`
    const { entry, agent, history } = await callDaemon(await connect(args), async (client) => {
      const found = await client.call('GET', path, Entry)
      return {
        entry: found,
        agent: await agentNameOf(client, found.agent_id),
        history: await client.call('GET', `${path}/history`, History),
      }
    })
    const { sessionId } = entry.source
    if (args.json) printJson({ ...entry, versions: history.versions })
    else
      print(
        [
          escapeControls(entry.content),
          `level       ${entry.level}`,
          `agent       ${escapeControls(agent)}`,
          ...(entry.user_id === null ? [] : [`for         ${escapeControls(entry.user_id)}`]),
          `known from  ${sourceOf(entry)}`,
          ...(typeof sessionId === 'string'
            ? [`said in     ${escapeControls(commandLine(`session show ${sessionId} --agent ${entry.agent_id}`))}`]
            : []),
          `learnt      ${renderTime(entry.created_at)}`,
          `confidence  ${entry.confidence}, now ${entry.strength.toFixed(2)}`,
          ...(entry.category === null ? [] : [`category    ${entry.category}`]),
          ...(entry.tags.length === 0 ? [] : [`tags        ${escapeControls(entry.tags.join(', '))}`]),
          ...history.versions
            .filter((version) => version.replaced_at !== null)
            .map((version) => `- until ${renderTime(version.replaced_at)}: ${escapeControls(version.content)}`),
        ].join('\n'),
      )
    return exits.ok
  },
})
