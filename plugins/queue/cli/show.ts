import { callDaemon, connect, defineCommand, escapeControls, exits, print, printJson, renderFacts } from 'svc/cli'
import { Job, jobArgs, jobPath } from './jobs.ts'

export default defineCommand({
  description: 'Show a job.',
  args: jobArgs,
  examples: [['svc queue show schedule 0d6c…', 'why it is dead']],
  async run(args) {
    const job = await callDaemon(await connect(args), (client) => client.call('GET', jobPath(args.lane, args.id), Job))
    if (args.json) printJson(job)
    else
      print(
        renderFacts([
          ['lane', job.lane],
          ['id', escapeControls(job.id)],
          ['state', job.state],
          ['agent', job.agent_id ?? ''],
          ['failures', String(job.failures)],
          ['lost', `${job.losses} times`],
          ['added', job.created_at],
          ['due', job.due_at],
          ['ended', job.settled_at ?? ''],
          ['error', escapeControls(job.error ?? '')],
        ]),
      )
    return exits.ok
  },
})
