import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  exits,
  print,
  printJson,
  renderDuration,
  renderTable,
} from 'svc/cli'
import { readStatus } from './jobs.ts'

export default defineCommand({
  description: 'How many jobs of each lane wait, run, were done and were given up.',
  args: clientArgs,
  examples: [
    ['svc queue status', 'all lanes'],
    ["svc queue status --json | jq '.dead'", 'a number for a script'],
  ],
  async run(args) {
    const status = await callDaemon(await connect(args), readStatus)
    if (args.json) printJson(status)
    else
      print(
        renderTable(
          ['LANE', 'WAITING', 'OLDEST', 'RUNNING', 'DONE/MIN', 'DONE/H', 'FAILED/H', 'DEAD'],
          status.lanes.map((lane) => [
            lane.lane,
            String(lane.depth),
            lane.oldest_secs === 0 ? '' : renderDuration(lane.oldest_secs),
            `${lane.running} of ${lane.capacity}`,
            String(lane.throughput),
            String(lane.done_last_hour),
            String(lane.failed_last_hour),
            String(lane.dead),
          ]),
        ),
      )
    return exits.ok
  },
})
