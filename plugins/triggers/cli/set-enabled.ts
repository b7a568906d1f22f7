import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import type { Command } from 'svc/cli'
import { patternOf, requireTrigger, Trigger, triggerArgs } from './trigger.ts'

/** The command that enables or disables a trigger. */
export function setEnabledCommand(enabled: boolean, description: string): Command {
  return defineCommand({
    description,
    args: triggerArgs,
    examples: [[`svc trigger ${enabled ? 'enable' : 'disable'} 0192f0c1`, 'by the beginning of its id']],
    async run(args) {
      const changed = await callDaemon(await connect(args), async (client) => {
        const { id } = await requireTrigger(client, args.trigger)
        return client.call('PUT', `/api/triggers/${id}`, Trigger, { body: { enabled } })
      })
      if (args.json) printJson(changed)
      else print(`The trigger for ${patternOf(changed)} is ${changed.enabled ? 'enabled' : 'disabled'}.`)
      return exits.ok
    },
  })
}
