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
  description: 'List the devices that are paired, the oldest first.',
  args: clientArgs,
  examples: [
    ['svc device list', 'what is paired, and when it was last seen'],
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
