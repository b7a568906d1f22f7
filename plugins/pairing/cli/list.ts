import {
  callDaemon,
  clientArgs,
  defineCommand,
  commandLine,
  connect,
  exits,
  print,
  printJson,
  renderDuration,
  renderTable,
} from 'svc/cli'
import { listDevices } from './client.ts'

export default defineCommand({
  description: 'List the paired devices, oldest first.',
  args: clientArgs,
  examples: [
    ['svc device list', 'the paired devices, and when each was last used'],
    ["svc device list --json | jq -r '.devices[].device_id'", 'ids for a script'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), listDevices)
    if (args.json) printJson(answer)
    else if (answer.devices.length === 0)
      print(`No device is paired. ${commandLine('device pair')} makes a code for one.`)
    else
      print(
        renderTable(
          ['NAME', 'PLATFORM', 'PAIRED', 'LAST SEEN', 'ID'],
          answer.devices.map((each) => [
            each.display_name,
            each.platform,
            ago(each.paired_at),
            ago(each.last_seen),
            each.device_id,
          ]),
        ),
      )
    return exits.ok
  },
})

function ago(at: string): string {
  const secs = (Date.now() - Date.parse(at)) / 1000
  return Number.isFinite(secs) ? `${renderDuration(Math.max(0, secs))} ago` : at
}
