import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { EXAMPLE_RUN, runArgs } from './change-run.ts'
import { watch } from './watch.ts'

export default defineCommand({
  description: 'Run again what a run did, as a new run; from a step with the results of those before it.',
  args: {
    ...runArgs,
    step: { type: 'string', valueHint: 'name', description: 'Step to begin with; the first one by default' },
    watch: { type: 'boolean', description: 'Follow the new run until it has ended' },
  },
  examples: [
    [`svc workflow rerun ${EXAMPLE_RUN}`, 'from the beginning'],
    [`svc workflow rerun ${EXAMPLE_RUN} --step improve --watch`, 'from a step, and follow it'],
  ],
  async run(args) {
    const { run, step, json } = args
    return callDaemon(await connect(args), async (client) => {
      const path = `/api/workflows/runs/${encodeURIComponent(run)}/rerun`
      const Answer = v.looseObject({ run_id: v.string(), status: v.string() })
      const answer = await client.call('POST', path, Answer, { body: step === undefined ? {} : { step } })
      if (args.watch) return watch(client, answer.run_id, json)
      if (json) printJson(answer)
      else print(`run ${answer.run_id} began`)
      return exits.ok
    })
  },
})
