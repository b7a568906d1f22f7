import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { laneArg, listJobs, requireLanes } from './jobs.ts'

const MAX_ERROR = 60

export default defineCommand({
  description: 'List the jobs of a lane, or of all, that are in one state.',
  args: {
    lane: { ...laneArg, required: false, description: 'The lane (default: all)' },
    state: {
      type: 'string',
      description: 'pending, running, done, dead or cancelled (default: pending)',
      valueHint: 'state',
    },
    ...clientArgs,
  },
  examples: [
    ['svc queue list --state dead', 'what was given up'],
    ['svc queue list task', 'tasks that wait for their agents'],
  ],
  async run(args) {
    const state = args.state ?? 'pending'
    const jobs = await callDaemon(await connect(args), async (client) => {
      const lanes = await requireLanes(client, args.lane)
      return (await Promise.all(lanes.map((lane) => listJobs(client, lane, state)))).flat()
    })
    if (args.json) printJson({ jobs })
    else if (jobs.length === 0) print(`No job is ${state}.`)
    else
      print(
        renderTable(
          ['LANE', 'ID', 'DUE', 'FAILURES', 'ERROR'],
          jobs.map((job) => [
            job.lane,
            escapeControls(job.id),
            job.due_at,
            String(job.failures),
            escapeControls(job.error ?? '').slice(0, MAX_ERROR),
          ]),
        ),
      )
    return exits.ok
  },
})
