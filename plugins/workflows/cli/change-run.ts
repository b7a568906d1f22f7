import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'

export const runArgs = {
  run: { type: 'positional', required: true, description: 'Id of the run' },
  ...clientArgs,
} as const
export const EXAMPLE_RUN = '0198c5a0-7e1c-7cc3-98c4-dc0c0c07398f'

/** A command that changes the state of a run. `done` says what it is then. */
export function changeCommand(action: 'cancel' | 'pause' | 'resume', description: string, done: string) {
  return defineCommand({
    description,
    args: runArgs,
    examples: [[`svc workflow ${action} ${EXAMPLE_RUN}`, 'svc workflow runs lists the ids']],
    async run(args) {
      const path = `/api/workflows/runs/${encodeURIComponent(args.run)}/${action}`
      const answer = await callDaemon(await connect(args), (client) =>
        client.call('POST', path, v.looseObject({ status: v.string() })),
      )
      if (args.json) printJson(answer)
      else print(`run ${args.run} ${done}`)
      return exits.ok
    },
  })
}
