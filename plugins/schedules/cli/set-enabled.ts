import { callDaemon, connect, defineCommand, exits, print, printJson, renderTime } from 'svc/cli'
import type { Command } from 'svc/cli'
import { requireSchedule, Schedule, scheduleArgs } from './schedule.ts'

/** The command that enables or disables a schedule. */
export function setEnabledCommand(enabled: boolean, description: string): Command {
  return defineCommand({
    description,
    args: scheduleArgs,
    examples: [[`svc schedule ${enabled ? 'enable' : 'disable'} news`, 'by its name']],
    async run(args) {
      const changed = await callDaemon(await connect(args), async (client) => {
        const { id } = await requireSchedule(client, args.schedule)
        return client.call('PUT', `/api/schedules/${id}/enable`, Schedule, { body: { enabled } })
      })
      if (args.json) printJson(changed)
      else print(enabled ? `"${changed.name}" runs ${renderTime(changed.next_run)}.` : `"${changed.name}" is disabled.`)
      return exits.ok
    },
  })
}
