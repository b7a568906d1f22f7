import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'

const Answer = v.looseObject({ skill: v.string(), path: v.string() })

export default defineCommand({
  description: 'Make a skill with a test in <home>/skills. Agents have it on their next turn.',
  args: {
    name: { type: 'positional', required: true, description: 'Lower-case letters, digits, "-" and "_"' },
    description: { type: 'string', alias: 'd', required: true, description: 'What it is for and when to use it' },
    runtime: { type: 'string', default: 'prompt_only', description: 'prompt_only, python, node or shell' },
    ...clientArgs,
  },
  examples: [['svc skill create release-notes -d "Writes release notes. Use when a version is out."', 'a text']],
  async run(args) {
    const body = { name: args.name, runtime: args.runtime, description: args.description }
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', '/api/skills/create', Answer, { body }),
    )
    if (args.json) printJson(answer)
    else print(`skill "${answer.skill}" is made in ${answer.path}`)
    return exits.ok
  },
})
