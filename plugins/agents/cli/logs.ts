import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  exits,
  Failure,
  print,
  printJson,
  renderTable,
  renderTime,
} from 'svc/cli'
import { requireAgent } from './client.ts'

const Logs = v.looseObject({
  logs: v.array(
    v.looseObject({
      timestamp: v.string(),
      level: v.string(),
      action: v.string(),
      detail: v.string(),
      outcome: v.string(),
    }),
  ),
})

export default defineCommand({
  description: 'Show what an agent did, as the audit log has it: the newest entries, the newest last.',
  args: {
    agent: { type: 'positional', required: true, description: 'Name or id of the agent' },
    level: { type: 'enum', options: ['error', 'warn', 'info'], description: 'Only entries of this level' },
    tail: { type: 'string', valueHint: 'number', default: '50', description: 'How many entries, 1 to 1000' },
    ...clientArgs,
  },
  examples: [
    ['svc agent logs scout', 'the newest 50 entries'],
    ['svc agent logs scout --level error --tail 10', 'what failed last'],
  ],
  async run(args) {
    if (!/^\d{1,4}$/.test(args.tail) || Number(args.tail) < 1 || Number(args.tail) > 1000)
      throw new Failure(exits.usage, `--tail: expected 1 to 1000, found "${args.tail}"`)
    const query = new URLSearchParams({ n: args.tail, ...(args.level !== undefined && { level: args.level }) })
    const found = await callDaemon(await connect(args), async (client) => {
      const { id } = await requireAgent(client, args.agent)
      return client.call('GET', `/api/agents/${id}/logs?${query}`, Logs)
    })
    if (args.json) printJson(found)
    else if (found.logs.length === 0) print('There is nothing in the log.')
    else
      print(
        renderTable(
          ['WHEN', 'LEVEL', 'ACTION', 'OUTCOME', 'DETAIL'],
          found.logs
            .toReversed()
            .map(({ timestamp, level, action, outcome, detail }) => [
              renderTime(timestamp, 'second'),
              level,
              action,
              outcome,
              detail,
            ]),
        ),
      )
    return exits.ok
  },
})
