import * as v from 'valibot'
import {
  callDaemon,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderFacts,
  renderTable,
  renderTime,
  shorten,
} from 'svc/cli'
import { Integration, integrationArgs, pathOf } from './client.ts'

const text = v.nullable(v.string())
const Detail = v.looseObject({
  ...Integration.entries,
  server: v.nullable(v.looseObject({ transport: v.string(), state: v.string(), command: text, url: text })),
  tools: v.array(v.looseObject({ name: v.string(), description: v.string(), usable: v.boolean(), reason: text })),
})
const MAX_CHARS = 80

export default defineCommand({
  description: 'Show an integration with its tools.',
  args: integrationArgs,
  examples: [['svc integration show github', 'its state and its tools']],
  async run(args) {
    const found = await callDaemon(await connect(args), (client) => client.call('GET', pathOf(args.id), Detail))
    if (args.json) {
      printJson(found)
      return exits.ok
    }
    print(
      renderFacts([
        ['id', found.id],
        ['name', escapeControls(found.name)],
        ['state', found.error === null ? found.status : `${found.status}: ${escapeControls(found.error)}`],
        ['added', renderTime(found.installed_at, 'second')],
        ['server', escapeControls(found.server?.command ?? found.server?.url ?? 'removed')],
      ]),
    )
    const rows = found.tools.map(({ name, description, usable, reason }) => [
      name,
      escapeControls(usable ? shorten(description, MAX_CHARS) : (reason ?? 'not usable')),
    ])
    if (rows.length > 0) print(`\n${renderTable(['TOOL', 'DESCRIPTION'], rows)}`)
    return exits.ok
  },
})
