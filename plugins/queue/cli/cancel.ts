import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { Changed, jobArgs, jobPath } from './jobs.ts'

export default defineCommand({
  description: 'Cancel a job that waits or runs. It is not run again unless somebody retries it.',
  args: jobArgs,
  examples: [['svc queue cancel result 0d6c…', 'it is not delivered']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('DELETE', jobPath(args.lane, args.id), Changed),
    )
    if (args.json) printJson(answer)
    else print('The job is cancelled.')
    return exits.ok
  },
})
