import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  defineCommand,
  commandLine,
  connect,
  exits,
  print,
  printJson,
  renderTable,
} from 'svc/cli'

const tiers = ['frontier', 'smart', 'balanced', 'fast', 'local', 'custom']
const Row = v.looseObject({
  id: v.string(),
  provider: v.string(),
  tier: v.string(),
  context_window: v.number(),
  input_cost_per_1m: v.number(),
  output_cost_per_1m: v.number(),
  pricing_known: v.boolean(),
  supports_tools: v.boolean(),
  supports_vision: v.boolean(),
  supports_thinking: v.boolean(),
  available: v.boolean(),
})
type Row = v.InferOutput<typeof Row>
const List = v.looseObject({ models: v.array(Row), total: v.number() })

/** `128000` as `128k`. */
const size = (tokens: number): string =>
  tokens >= 1_000_000 ? `${Math.round(tokens / 100_000) / 10}M` : `${Math.round(tokens / 1000)}k`
const price = ({ input_cost_per_1m: input, output_cost_per_1m: output, pricing_known: known }: Row): string =>
  !known ? 'unknown' : input === 0 && output === 0 ? 'free' : `$${input} / $${output}`
const abilities = (row: Row): string =>
  [row.supports_tools && 'tools', row.supports_vision && 'vision', row.supports_thinking && 'thinking']
    .filter(Boolean)
    .join(' ')

export default defineCommand({
  description: 'List the known models, with the prices of a million tokens of input and output.',
  args: {
    provider: { type: 'string', valueHint: 'name', description: 'Only those of one provider' },
    tier: { type: 'enum', options: tiers, description: 'Only those of one tier' },
    available: { type: 'boolean', description: 'Only those that can be used now' },
    ...clientArgs,
  },
  examples: [
    ['svc models --available', 'what an agent can use now'],
    ['svc models --provider anthropic --tier smart', 'two conditions'],
    ["svc models --json | jq -r '.models[].id'", 'ids for a script'],
  ],
  async run(args) {
    const query = new URLSearchParams({
      ...(args.provider ? { provider: args.provider } : {}),
      ...(args.tier ? { tier: args.tier } : {}),
      ...(args.available ? { available: 'true' } : {}),
    })
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('GET', `/api/models${query.size > 0 ? `?${query}` : ''}`, List),
    )
    if (args.json) printJson(answer)
    else if (answer.models.length === 0)
      print(
        args.available
          ? `No model can be used. Give a provider a key with ${commandLine('providers set-key <name>')}.`
          : `No such model. ${commandLine('providers')} lists the providers.`,
      )
    else
      print(
        renderTable(
          ['PROVIDER', 'MODEL', 'TIER', 'WINDOW', 'IN / OUT PER 1M', 'ABILITIES', 'USABLE'],
          answer.models.map((row) => [
            row.provider,
            row.id,
            row.tier,
            size(row.context_window),
            price(row),
            abilities(row),
            row.available ? 'yes' : 'no',
          ]),
        ),
      )
    return exits.ok
  },
})
