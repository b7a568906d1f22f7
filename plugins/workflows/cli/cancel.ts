import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'

export default defineCommand({
  description: 'Cancel a run, with the step that runs.',
  args: { run: { type: 'positional', required: true, description: 'Id of the run' }, ...clientArgs },
  examples: [['svc workflow cancel 0198c5a0-7e1c-7cc3-98c4-dc0c0c07398f', 'svc workflow runs lists the ids']],
  async run(args) {
    const path = `/api/workflows/runs/${encodeURIComponent(args.run)}/cancel`
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', path, v.looseObject({ status: v.string() })),
    )
    if (args.json) printJson(answer)
    else print(`run ${args.run} was cancelled`)
    return exits.ok
  },
})
