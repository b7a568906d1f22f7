import * as v from 'valibot'
import { callDaemon, clientArgs, defineCommand, connect, escapeControls, exits, print, printJson } from 'svc/cli'
import { requireDevice } from './client.ts'

const Answer = v.looseObject({
  effects: v.optional(v.array(v.object({ details: v.string(), timestamp: v.string() })), []),
  effects_total: v.optional(v.number(), 0),
})

export default defineCommand({
  description: 'Remove a device. Its key stops working at once, and its open connections are closed.',
  args: {
    device: { type: 'positional', required: true, description: 'Name or id of the device, or the beginning of its id' },
    ...clientArgs,
  },
  examples: [
    ['svc device remove 0f6a9c1e', 'by the beginning of its id'],
    ['svc device remove "my phone"', 'by name'],
  ],
  async run(args) {
    const { device, answer } = await callDaemon(await connect(args), async (client) => {
      const found = await requireDevice(client, args.device)
      return {
        device: found,
        answer: await client.call('DELETE', `/api/pairing/devices/${found.device_id}`, Answer),
      }
    })
    if (args.json) printJson(answer)
    else {
      print(`removed ${escapeControls(device.display_name)} (${device.device_id}): its key opens nothing any more`)
      const { effects, effects_total: total } = answer
      if (total > 0)
        print(`what it made stays; ${effects.length} of ${total} entries of the audit trail, the newest last:`)
      for (const { timestamp, details } of effects) print(`  ${timestamp} ${escapeControls(details)}`)
    }
    return exits.ok
  },
})
