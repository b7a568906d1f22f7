import { callDaemon, clientArgs, connect, defineCommand, exits, Failure, print, printJson } from 'svc/cli'
import { pathOf, requireVariable, skillArg, Variables } from './client.ts'

export default defineCommand({
  description: 'Remove the value of a variable of a skill from the vault. One of the environment, or a default, stays.',
  args: {
    skill: skillArg,
    variable: { type: 'positional', required: false, description: 'Name of the variable' },
    all: { type: 'boolean', description: 'Remove the values of all' },
    ...clientArgs,
  },
  examples: [
    ['svc skill config remove api-tester API_TESTER_TOKEN', 'one value'],
    ['svc skill config remove api-tester --all', 'all that the vault has for it'],
  ],
  async run(args) {
    const { skill, variable } = args
    if ((variable === undefined) === (args.all !== true))
      throw new Failure(exits.usage, 'which variable is not said', 'name one, or add --all')
    const answer = await callDaemon(await connect(args), async (client) => {
      if (variable === undefined) return await client.call('DELETE', pathOf(skill), Variables)
      await requireVariable(client, skill, variable)
      return await client.call('PUT', pathOf(skill), Variables, { body: { values: { [variable]: null } } })
    })
    if (args.json) printJson(answer)
    else print(variable === undefined ? `all values of "${skill}" are removed` : `${variable} of "${skill}" is removed`)
    return exits.ok
  },
})
