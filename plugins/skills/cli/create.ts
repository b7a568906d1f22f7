import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, Failure, print, printJson } from 'svc/cli'

/** As the daemon checks it. */
const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/
const Answer = v.looseObject({ skill: v.string(), path: v.string() })

export default defineCommand({
  description: 'Make a skill with a test in <home>/skills. Agents have it on their next turn.',
  args: {
    name: { type: 'positional', required: true, description: 'Lower-case letters, digits, "-" and "_"' },
    description: { type: 'string', alias: 'd', required: true, description: 'What it is for and when to use it' },
    runtime: {
      type: 'enum',
      options: ['prompt_only', 'python', 'node', 'shell'],
      default: 'prompt_only',
      description: 'What runs its tools',
    },
    ...clientArgs,
  },
  examples: [['svc skill create release-notes -d "Writes release notes. Use when a version is out."', 'a text']],
  async run(args) {
    if (!NAME.test(args.name))
      throw new Failure(
        exits.usage,
        `"${args.name}" cannot be the name of a skill`,
        'it is 1 to 64 lower-case letters, digits, "-" and "_", and begins with a letter or digit',
      )
    const body = { name: args.name, runtime: args.runtime, description: args.description }
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', '/api/skills/create', Answer, { body }),
    )
    if (args.json) printJson(answer)
    else print(`skill "${answer.skill}" is made in ${answer.path}`)
    return exits.ok
  },
})
