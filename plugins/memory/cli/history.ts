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
  renderTime,
} from 'svc/cli'
import { sourceOf } from './memory.ts'

const History = v.looseObject({
  versions: v.array(
    v.looseObject({
      version: v.number(),
      content: v.string(),
      source: v.nullable(v.looseObject({ kind: v.string(), labels: v.array(v.string()) })),
      written_at: v.string(),
    }),
  ),
  deleted_at: v.nullable(v.string()),
  deleted_by: v.nullable(v.string()),
})

export default defineCommand({
  description: 'Show what a memory said and when, the oldest first; of a deleted one who deleted it.',
  args: { id: { type: 'positional', required: true, description: 'Id of the memory' }, ...clientArgs },
  examples: [['svc memory history 0190c9a4-6c1e-7f3a-9b7e-2f6f8d7a1c11', 'with what it replaced']],
  async run(args) {
    const path = `/api/memory/items/${encodeURIComponent(args.id)}/history`
    const history = await callDaemon(await connect(args), (client) => client.call('GET', path, History))
    if (args.json) printJson(history)
    else if (history.deleted_at !== null)
      print(`It was deleted on ${renderTime(history.deleted_at)} by ${escapeControls(history.deleted_by ?? '')}.`)
    else
      for (const { version, content, source, written_at: at } of history.versions)
        print(`${version}. ${renderTime(at)}, ${source ? sourceOf({ source }) : 'unknown'}: ${escapeControls(content)}`)
    return exits.ok
  },
})
