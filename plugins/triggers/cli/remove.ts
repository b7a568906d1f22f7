import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { patternOf, requireTrigger, triggerArgs } from './trigger.ts'

export default defineCommand({
  description: 'Remove a trigger with its history. What it fired for and runs is stopped.',
  args: triggerArgs,
  examples: [['svc trigger remove 0192f0c1', 'by the beginning of its id']],
  async run(args) {
    const { found, answer } = await callDaemon(await connect(args), async (client) => {
      const trigger = await requireTrigger(client, args.trigger)
      const path = `/api/triggers/${trigger.id}`
      return { found: trigger, answer: await client.call('DELETE', path, v.looseObject({ status: v.string() })) }
    })
    if (args.json) printJson(answer)
    else print(`The trigger for ${patternOf(found)} is removed.`)
    return exits.ok
  },
})
