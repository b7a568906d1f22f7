import * as v from 'valibot'
import { callDaemon, clientArgs, defineCommand, connect, exits, Failure, print, printJson } from 'svc/cli'

const Answer = v.looseObject({
  status: v.string(),
  latency_ms: v.optional(v.number()),
  model_tested: v.optional(v.string()),
  error: v.optional(v.string()),
})

export default defineCommand({
  description: 'Call a provider once to see that its address and its key are right.',
  args: {
    provider: { type: 'positional', required: true, description: 'Name of the provider, such as openai' },
    ...clientArgs,
  },
  examples: [
    ['svc providers test openai', 'how long it took, and with which model'],
    ['svc providers test groq --json', 'for a script; exit code 1 when it failed'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', `/api/providers/${encodeURIComponent(args.provider)}/test`, Answer, { timeoutMs: 60_000 }),
    )
    if (args.json) {
      printJson(answer)
      return answer.status === 'ok' ? exits.ok : exits.failed
    }
    if (answer.status !== 'ok') throw new Failure(exits.failed, answer.error ?? `${args.provider} does not work`)
    const model = answer.model_tested === undefined ? '' : ` (${answer.model_tested})`
    print(`${args.provider} answered in ${answer.latency_ms ?? 0} ms${model}`)
    return exits.ok
  },
})
