import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  defineCommand,
  connect,
  escapeControls,
  exits,
  print,
  printJson,
} from 'svc/cli'
import { requireDevice } from './client.ts'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const works = v.optional(
  v.array(v.object({ kind: v.string(), id: v.string(), name: v.string(), agent_id: v.string() })),
  [],
)
const Answer = v.looseObject({
  stopped: works,
  staying: works,
  effects: v.optional(v.array(v.object({ details: v.string(), timestamp: v.string() })), []),
  effects_total: v.optional(v.number(), 0),
})

export default defineCommand({
  description: 'Remove a device. Its key stops working at once, and its open connections are closed.',
  args: {
    device: { type: 'positional', required: true, description: 'Name or id of the device, or the beginning of its id' },
    'stop-effects': {
      type: 'boolean',
      description:
        'End what it began as well: agents, schedules, triggers, tasks, runs of workflows. By id, also later',
    },
    ...clientArgs,
  },
  examples: [
    ['svc device remove 0f6a9c1e', 'by the beginning of its id'],
    ['svc device remove "my phone"', 'by name'],
    ['svc device remove "my phone" --stop-effects', 'with the agents, schedules and triggers that it made'],
  ],
  async run(args) {
    const { device, answer } = await callDaemon(await connect(args), async (client) => {
      const stop = args['stop-effects'] === true
      // One that was removed before is not in the list.
      const wasRemoved = stop && UUID.test(args.device)
      const found = wasRemoved
        ? { device_id: args.device, display_name: 'device' }
        : await requireDevice(client, args.device)
      const path = `/api/pairing/devices/${found.device_id}${stop ? '?effects=stop' : ''}`
      return { device: found, answer: await client.call('DELETE', path, Answer) }
    })
    if (args.json) printJson(answer)
    else {
      print(`removed ${escapeControls(device.display_name)} (${device.device_id}): its key opens nothing any more`)
      const { effects, effects_total: total, stopped, staying } = answer
      printWork('ended', stopped)
      printWork(
        `goes on, unless you end it (${commandLine(`device remove ${device.device_id} --stop-effects`)})`,
        staying,
      )
      if (total > 0)
        print(`what it made or changed: ${effects.length} of ${total} entries of the audit trail, the newest last:`)
      for (const { timestamp, details } of effects) print(`  ${timestamp} ${escapeControls(details)}`)
    }
    return exits.ok
  },
})

function printWork(what: string, work: v.InferOutput<typeof works>): void {
  if (work.length > 0) print(`${what}:`)
  for (const { kind, name, id } of work) print(`  ${kind.replace('_', ' ')} ${escapeControls(name)} (${id})`)
}
