import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { requireSchedule, scheduleArgs } from './schedule.ts'

export default defineCommand({
  description: 'Remove a schedule with its history. A run that is going on is stopped.',
  args: scheduleArgs,
  examples: [['svc schedule remove news', 'by its name']],
  async run(args) {
    const { name, answer } = await callDaemon(await connect(args), async (client) => {
      const found = await requireSchedule(client, args.schedule)
      const removed = await client.call('DELETE', `/api/schedules/${found.id}`, v.looseObject({ status: v.string() }))
      return { name: found.name, answer: removed }
    })
    if (args.json) printJson(answer)
    else print(`"${name}" is removed.`)
    return exits.ok
  },
})
