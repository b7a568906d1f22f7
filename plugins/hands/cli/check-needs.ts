import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  note,
  print,
  printJson,
} from 'svc/cli'
import { Dependencies, describeNeeds, handArgs } from './client.ts'

const Installed = v.looseObject({
  requirements_met: v.boolean(),
  results: v.array(
    v.looseObject({ key: v.string(), status: v.string(), message: v.string(), command: v.optional(v.string()) }),
  ),
})
/** An approval, and some commands of minutes each. */
const TIMEOUT_MS = 3_600_000

export default defineCommand({
  description:
    'Check what a hand needs. With --install, the commands that install what is missing wait for an approval.',
  args: {
    ...handArgs,
    install: { type: 'boolean', description: 'Install missing programs after an approval' },
    ...clientArgs,
  },
  examples: [
    ['svc hand check clip', 'what is missing'],
    ['svc hand check clip --install', 'and install it'],
  ],
  async run(args) {
    const path = `/api/hands/${encodeURIComponent(args.hand)}`
    const connection = await connect(args)
    if (args.install === true) {
      note(`svc: the commands wait for an approval: ${commandLine('approval list')}`)
      const answer = await callDaemon(connection, (client) =>
        client.call('POST', `${path}/install-deps`, Installed, { timeoutMs: TIMEOUT_MS }),
      )
      if (args.json) printJson(answer)
      else
        print(
          answer.results
            .map(({ key, status, message, command }) =>
              escapeControls(`${key}: ${status}: ${message}${command === undefined ? '' : ` (${command})`}`),
            )
            .join('\n'),
        )
      return answer.requirements_met ? exits.ok : exits.failed
    }
    const found = await callDaemon(connection, (client) => client.call('POST', `${path}/check-deps`, Dependencies))
    if (args.json) printJson(found)
    else print(found.requirements.length === 0 ? 'It needs nothing.' : describeNeeds(found.requirements))
    return found.requirements_met ? exits.ok : exits.failed
  },
})
