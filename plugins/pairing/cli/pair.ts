import { setTimeout as delay } from 'node:timers/promises'
import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  defineCommand,
  commandLine,
  connect,
  escapeControls,
  exits,
  Failure,
  note,
  print,
  printJson,
  renderDuration,
} from 'svc/cli'
import type { DaemonClient } from 'svc/cli'
import { listDevices } from './client.ts'
import type { Device } from './client.ts'

const Requested = v.looseObject({
  pairing_code: v.string(),
  expires_at: v.string(),
  qr_uri: v.optional(v.string(), ''),
})
const POLL_INTERVAL_MS = 1000

export default defineCommand({
  description: 'Create a pairing code. The device that redeems it gets a key of its own.',
  args: { ...clientArgs, wait: { type: 'boolean', description: 'Wait until a device is paired, or the code expires' } },
  examples: [
    ['svc device pair --wait', 'shows the code, and then which device it was'],
    ['svc device pair --json | jq -r .pairing_code', 'the code for a script'],
  ],
  async run(args) {
    const paired = await callDaemon(await connect(args), async (client) => {
      const before = args.wait ? (await listDevices(client)).devices : []
      const answer = await client.call('POST', '/api/pairing/request', Requested)
      const left = renderDuration(Math.max(0, Math.ceil((Date.parse(answer.expires_at) - Date.now()) / 1000)))
      if (args.json && !args.wait) printJson(answer)
      else if (args.json) note(answer.pairing_code)
      else
        print(
          `Pairing code: ${answer.pairing_code}\nIt works once, for ${left}. The device sends it, for example:\n` +
            `  curl ${client.url}/api/pairing/complete --json ` +
            `'{"pairing_code": "${answer.pairing_code}", "display_name": "my phone"}'`,
        )
      return args.wait ? await waitForDevice(client, before, Date.parse(answer.expires_at)) : undefined
    })
    if (paired && args.json) printJson(paired)
    else if (paired)
      print(`paired: ${escapeControls(paired.display_name)} (${escapeControls(paired.platform)}, ${paired.device_id})`)
    return exits.ok
  },
})

async function waitForDevice(client: DaemonClient, before: readonly Device[], until: number): Promise<Device> {
  const known = new Set(before.map(({ device_id: id }) => id))
  for (;;) {
    const found = (await listDevices(client)).devices.find(({ device_id: id }) => !known.has(id))
    if (found) return found
    if (Date.now() >= until)
      throw new Failure(
        exits.failed,
        'the code was not used in time',
        `make another one with ${commandLine('device pair')}`,
      )
    await delay(POLL_INTERVAL_MS)
  }
}
