import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
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
    hand: { ...handArgs.hand, description: 'Id of the hand, or <hand>/<instance>' },
    key: { type: 'positional', required: false, description: 'Setting to show or change' },
    value: { type: 'positional', required: false, description: "Its new value; '' for none; - asks for it" },
    instance: { type: 'string', description: 'Name of the instance, where there are several', valueHint: 'name' },
    ...clientArgs,
  },
  examples: [
    ['svc hand settings researcher', 'what they are'],
    ['svc hand settings researcher depth thorough', 'from the next run on'],
    ['svc hand settings tides token -', 'a secret, which no shell history keeps'],
  ],
  async run(args) {
    const { key, value } = args
    const [hand = '', named] = args.hand.split('/')
    const found = await callDaemon(await connect(args), async (client) => {
      // A change is for one that is named, where there are several.
      const instance =
        args.instance ?? named ?? (value === undefined ? undefined : (await requireInstance(client, hand)).instance_id)
      const query = instance === undefined ? '' : `?instance=${encodeURIComponent(instance)}`
      const path = `/api/hands/${encodeURIComponent(hand)}/settings${query}`
      if (key !== undefined && value !== undefined) {
        const given = value === '-' ? await readSecret(`${key}, not shown: `) : value
        await client.call('PUT', path, Saved, { body: { [key]: given } })
      }
      return client.call('GET', path, View)
    })
    const shown = found.settings.filter((setting) => key === undefined || setting.key === key)
    if (key !== undefined && shown.length === 0)
      throw new Failure(
        exits.usage,
        `the hand "${hand}" has no setting "${key}"`,
        `it has ${found.settings.map((setting) => setting.key).join(', ') || 'none'}`,
      )
    if (args.json) printJson(found)
    else
      print(
        renderTable(
          ['KEY', 'VALUE', 'WHAT IT IS'],
          shown.map(({ key: name, label }) =>
            [name, String(found.current_values[name] ?? ''), label].map((text) => escapeControls(text)),
          ),
        ),
      )
    return exits.ok
  },
})
