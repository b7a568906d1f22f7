import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { instanceArgs, nameOf, requireInstance } from './client.ts'

const Changed = v.looseObject({ status: v.string() })

/** `pause`, `resume` and `stop`. */
export const changeCommand = (change: 'pause' | 'resume' | 'stop', description: string, example: string) =>
  defineCommand({
    description,
    args: { ...instanceArgs, ...clientArgs },
    examples: [[`svc hand ${change} researcher`, example]],
    async run(args) {
      const [instance, answer] = await callDaemon(await connect(args), async (client) => {
        const found = await requireInstance(client, args.instance)
        const path = `/api/hands/instances/${found.instance_id}`
        const done =
          change === 'stop'
            ? await client.call('DELETE', path, Changed)
            : await client.call('POST', `${path}/${change}`, Changed)
        return [found, done] as const
      })
      if (args.json) printJson(answer)
      else print(`${nameOf(instance)} is ${answer.status}`)
      return exits.ok
    },
  })
