import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'

const Answer = v.looseObject({ status: v.string(), skill: v.string() })

export default defineCommand({
  description: 'Uninstall a skill. One that comes with svc is disabled by plugins.skills.disabled instead.',
  args: { name: { type: 'positional', required: true, description: 'Name of the skill' }, ...clientArgs },
  examples: [['svc skill remove release-notes', 'one of <home>/skills']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', '/api/skills/uninstall', Answer, { body: { name: args.name } }),
    )
    if (args.json) printJson(answer)
    else print(`skill "${answer.skill}" is ${answer.status}`)
    return exits.ok
  },
})
