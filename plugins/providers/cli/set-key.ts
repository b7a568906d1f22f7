import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  defineCommand,
  commandLine,
  connect,
  exits,
  Failure,
  print,
  printJson,
  readSecret,
} from 'svc/cli'

export default defineCommand({
  description:
    'Store the key of a provider, encrypted. Enter it without showing it, or pass it on standard input; ' +
    'it is never an argument, which other users could see.',
  args: {
    provider: { type: 'positional', required: true, description: 'Name of the provider, such as openai' },
    ...clientArgs,
  },
  examples: [
    ['svc providers set-key anthropic', 'asks for the key'],
    ['pass show openai | svc providers set-key openai', 'from a password manager'],
  ],
  async run(args) {
    const connection = await connect(args)
    const path = `/api/providers/${encodeURIComponent(args.provider)}`
    // Before anybody types a key in vain.
    await callDaemon(connection, (client) => client.call('GET', path, v.looseObject({ name: v.string() })))
    const key = await readSecret(`Key of ${args.provider} (not shown): `)
    if (key === '') throw new Failure(exits.usage, 'no key was given', 'nothing was changed')
    const answer = await callDaemon(connection, (client) =>
      client.call('POST', `${path}/key`, v.looseObject({ status: v.string() }), { body: { api_key: key } }),
    )
    if (args.json) printJson(answer)
    else {
      const test = commandLine(`providers test ${args.provider}`)
      print(`The key of ${args.provider} is stored and in use. ${test} tests it.`)
    }
    return exits.ok
  },
})
