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
  readSecret,
  renderTable,
} from 'svc/cli'
import { handArgs, requireInstance } from './client.ts'

const values = v.record(v.string(), v.union([v.string(), v.boolean()]))
const View = v.looseObject({
  settings: v.array(v.looseObject({ key: v.string(), label: v.string() })),
  current_values: values,
})
const Saved = v.looseObject({ instance_id: v.string(), config: values })

export default defineCommand({
  description: 'Show the settings of a hand, or change one of an instance.',
  args: {
    ...handArgs,
    key: { type: 'positional', required: false, description: 'Setting to change' },
    value: { type: 'positional', required: false, description: 'Its value; empty when absent; - asks for it' },
    instance: { type: 'string', description: 'Name of the instance, where there are several', valueHint: 'name' },
    ...clientArgs,
  },
  examples: [
    ['svc hand settings researcher', 'what they are'],
    ['svc hand settings researcher depth thorough', 'from the next run on'],
    ['svc hand settings tides token -', 'a secret, which no shell history keeps'],
  ],
  async run(args) {
    const found = await callDaemon(await connect(args), async (client) => {
      // A change is for one that is named, where there are several.
      const instance =
        args.instance ?? (args.key === undefined ? undefined : (await requireInstance(client, args.hand)).instance_id)
      const query = instance === undefined ? '' : `?instance=${encodeURIComponent(instance)}`
      const path = `/api/hands/${encodeURIComponent(args.hand)}/settings${query}`
      if (args.key !== undefined) {
        const value = args.value === '-' ? await readSecret(`${args.key}, not shown: `) : (args.value ?? '')
        await client.call('PUT', path, Saved, { body: { [args.key]: value } })
      }
      return client.call('GET', path, View)
    })
    if (args.json) printJson(found)
    else
      print(
        renderTable(
          ['KEY', 'VALUE', 'WHAT IT IS'],
          found.settings.map(({ key, label }) =>
            [key, String(found.current_values[key] ?? ''), label].map((text) => escapeControls(text)),
          ),
        ),
      )
    return exits.ok
  },
})
