import { callDaemon, clientArgs, connect, defineCommand, exits, Failure, print, printJson } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'
import { Changed, jobPath, laneArg, listJobs, requireLanes } from './jobs.ts'

export default defineCommand({
  description: 'Run a dead or cancelled job again, or all dead jobs of a lane.',
  args: {
    lane: laneArg,
    id: { type: 'positional', required: false, description: 'Id of the job' },
    dead: { type: 'boolean', description: 'All jobs of the lane that are dead' },
    ...clientArgs,
  },
  examples: [
    ['svc queue retry result 0d6c…', 'one job'],
    ['svc queue retry result --dead', 'all that were given up'],
  ],
  async run(args) {
    const { lane, id } = args
    if ((id === undefined) === !args.dead)
      throw new Failure(exits.usage, 'what is to be run again?', 'give the id of a job, or --dead for all dead jobs')
    const ids = await callDaemon(await connect(args), async (client) => {
      const wanted = id === undefined ? await deadOf(client, lane) : [id]
      for (const each of wanted) await client.call('POST', `${jobPath(lane, each)}/retry`, Changed)
      return wanted
    })
    if (args.json) printJson({ status: 'retried', lane, ids })
    else print(ids.length === 1 ? 'The job runs again.' : `${ids.length} jobs run again.`)
    return exits.ok
  },
})

async function deadOf(client: DaemonClient, lane: string): Promise<readonly string[]> {
  await requireLanes(client, lane)
  return (await listJobs(client, lane, 'dead')).map((job) => job.id)
}
