import * as v from 'valibot'
import { callDaemon, clientArgs, commandLine, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { instanceArgs, nameOf, requireInstance } from './client.ts'

const Answer = v.looseObject({})

export default defineCommand({
  description: 'Wake an instance now. Its schedule goes on as before.',
  args: { ...instanceArgs, ...clientArgs },
  examples: [['svc hand run researcher', 'one run, beside those of its schedule']],
  async run(args) {
    const [instance, answer] = await callDaemon(await connect(args), async (client) => {
      const found = await requireInstance(client, args.instance)
      return [found, await client.call('POST', `/api/schedules/${found.schedule_id}/run`, Answer)] as const
    })
    if (args.json) printJson(answer)
    else
      print(
        `${nameOf(instance)} is woken; ${commandLine(`schedule history ${instance.schedule_id}`)} shows how the run ends`,
      )
    return exits.ok
  },
})
