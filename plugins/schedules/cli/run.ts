import * as v from 'valibot'
import { callDaemon, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { requireSchedule, scheduleArgs } from './schedule.ts'

const Ran = v.looseObject({ status: v.string(), response: v.optional(v.string(), '') })

export default defineCommand({
  description: 'Run a schedule now and show the answer. Its next time stays as it is.',
  args: scheduleArgs,
  examples: [['svc schedule run news', 'the answer is delivered as well']],
  async run(args) {
    const answer = await callDaemon(await connect(args), async (client) => {
      const { id } = await requireSchedule(client, args.schedule)
      return client.call('POST', `/api/schedules/${id}/run`, Ran)
    })
    if (args.json) printJson(answer)
    else print(escapeControls(answer.response, true))
    return exits.ok
  },
})
