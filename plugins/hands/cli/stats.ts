import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderFacts,
} from 'svc/cli'
import { instanceArgs, requireInstance } from './client.ts'

const Stats = v.looseObject({
  status: v.string(),
  last_run: v.optional(v.nullable(v.string()), null),
  next_run: v.optional(v.nullable(v.string()), null),
  metrics: v.record(
    v.string(),
    v.looseObject({ value: v.nullable(v.union([v.number(), v.string()])), format: v.string() }),
  ),
})

export default defineCommand({
  description: 'Show what an instance has recorded for its dashboard, and when it ran.',
  args: { ...instanceArgs, ...clientArgs },
  examples: [['svc hand stats researcher', 'its figures']],
  async run(args) {
    const found = await callDaemon(await connect(args), async (client) => {
      const { instance_id: id } = await requireInstance(client, args.instance)
      return client.call('GET', `/api/hands/instances/${id}/stats`, Stats)
    })
    if (args.json) printJson(found)
    else
      print(
        renderFacts([
          ['status', escapeControls(found.status)],
          ['last run', found.last_run ?? 'none yet'],
          ['next run', found.next_run ?? 'none'],
          ...Object.entries(found.metrics).map(
            ([label, { value, format }]) => [escapeControls(label), escapeControls(toText(value, format))] as const,
          ),
        ]),
      )
    return exits.ok
  },
})

function toText(value: number | string | null, format: string): string {
  if (value === null) return 'none yet'
  if (format === 'percentage') return `${value} %`
  if (format === 'bytes') return `${value} bytes`
  return format === 'duration' ? `${value} s` : String(value)
}
