import * as v from 'valibot'
import { callDaemon, clientArgs, defineCommand, connect, exits, print, printJson, renderTable } from 'svc/cli'

const Row = v.looseObject({
  name: v.string(),
  display_name: v.string(),
  auth_status: v.string(),
  env_var: v.optional(v.string()),
  error: v.optional(v.string()),
  base_url: v.optional(v.string()),
  model_count: v.number(),
})
const List = v.looseObject({
  providers: v.array(Row),
})
const words: Readonly<Record<string, string>> = {
  configured: 'has a key',
  missing: 'no key',
  no_key_needed: 'needs none',
}
/** What has neither an address nor a variable for a key, and is ready, is a program of this machine. */
function stateOf({ auth_status: status, env_var: variable, base_url: url, error }: v.InferOutput<typeof Row>): string {
  if (error !== undefined) return 'not installed'
  return status === 'configured' && variable === undefined && url === undefined
    ? 'installed'
    : (words[status] ?? status)
}
/** Those that were set up come first, then those that need no key. */
const rankOf = ({ auth_status: status, error }: v.InferOutput<typeof Row>): number =>
  status === 'missing' || error !== undefined ? 2 : status === 'configured' ? 0 : 1

export default defineCommand({
  description: 'List the model providers and whether they can be used.',
  args: clientArgs,
  examples: [
    ['svc providers', 'names, keys and addresses'],
    ['svc providers set-key anthropic', 'enter a key, without showing it'],
    ['svc providers test groq', 'call one to see that it answers'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) => client.call('GET', '/api/providers', List))
    if (args.json) printJson(answer)
    else
      print(
        renderTable(
          ['NAME', 'KEY', 'VARIABLE', 'MODELS', 'ADDRESS'],
          answer.providers
            .toSorted((one, other) => rankOf(one) - rankOf(other))
            .map((row) => [row.name, stateOf(row), row.env_var ?? '', String(row.model_count), row.base_url ?? '']),
        ),
      )
    return exits.ok
  },
})
