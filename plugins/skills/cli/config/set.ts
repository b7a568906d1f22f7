import { callDaemon, clientArgs, connect, defineCommand, exits, Failure, print, printJson, readSecret } from 'svc/cli'
import { pathOf, requireVariable, skillArg, Variables } from './client.ts'

export default defineCommand({
  description:
    'Store the value of a variable of a skill, encrypted. Enter it without showing it, or pass it on standard input; ' +
    'it is never an argument, which other users could see.',
  args: {
    skill: skillArg,
    variable: { type: 'positional', required: true, description: 'Name of the variable' },
    ...clientArgs,
  },
  examples: [
    ['svc skill config set api-tester API_TESTER_TOKEN', 'asks for it'],
    ['pass show shop | svc skill config set api-tester API_TESTER_TOKEN', 'from a password manager'],
  ],
  async run(args) {
    const { skill, variable } = args
    const connection = await connect(args)
    await callDaemon(connection, (client) => requireVariable(client, skill, variable))
    const value = await readSecret(`${variable} of ${skill} (not shown): `)
    if (value === '') throw new Failure(exits.usage, 'no value was given', 'nothing was changed')
    const answer = await callDaemon(connection, (client) =>
      client.call('PUT', pathOf(skill), Variables, { body: { values: { [variable]: value } } }),
    )
    if (args.json) printJson(answer)
    else print(`${variable} of "${skill}" is set; tools of the skill have it from their next call`)
    return exits.ok
  },
})
