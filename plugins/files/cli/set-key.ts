import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, Failure, print, printJson, readSecret } from 'svc/cli'

export default defineCommand({
  description:
    'Store the access key of the bucket of [plugins.files.s3], encrypted, for all daemons on the database. It is tried ' +
    'first, and used from the next request on. Enter the secret without showing it, or pass it on standard input.',
  args: {
    id: { type: 'positional', required: true, description: 'Id of the access key, such as AKIAIOSFODNN7EXAMPLE' },
    'session-token': { type: 'boolean', description: 'Ask for a session token as well, on a second line' },
    ...clientArgs,
  },
  examples: [
    ['svc files set-key AKIAIOSFODNN7EXAMPLE', 'asks for the secret'],
    ['pass show s3 | svc files set-key AKIAIOSFODNN7EXAMPLE', 'from a password manager'],
  ],
  async run(args) {
    const connection = await connect(args)
    const secret = await readSecret(`Secret of ${args.id} (not shown): `)
    if (secret === '') throw new Failure(exits.usage, 'no secret was given', 'nothing was changed')
    const token = args['session-token'] === true ? await readSecret('Session token (not shown): ') : ''
    const body = { access_key_id: args.id, secret_access_key: secret, ...(token !== '' && { session_token: token }) }
    const Answer = v.looseObject({ bucket: v.string() })
    const answer = await callDaemon(connection, (client) =>
      client.call('POST', '/api/files/bucket/key', Answer, { body, timeoutMs: 300_000 }),
    )
    if (args.json) printJson(answer)
    else print(`The access key ${args.id} works, is stored, and is in use for the bucket "${answer.bucket}".`)
    return exits.ok
  },
})
