import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson, renderTable } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

const periods = ['hour', 'day', 'week', 'month'] as const
const Total = v.looseObject({
  period: v.string(),
  total_input_tokens: v.number(),
  total_output_tokens: v.number(),
  total_cost_usd: v.number(),
  request_count: v.number(),
  active_agents: v.number(),
  unpriced_requests: v.optional(v.number(), 0),
})
const group = {
  input_tokens: v.number(),
  output_tokens: v.number(),
  cost_usd: v.number(),
  request_count: v.number(),
  unpriced_requests: v.optional(v.number(), 0),
}
const Group = v.looseObject(group)
const Models = v.looseObject({
  models: v.array(v.looseObject({ model: v.string(), provider: v.string(), ...group })),
})
const Agents = v.looseObject({
  agents: v.array(v.looseObject({ agent_id: v.string(), name: v.nullable(v.string()), ...group })),
})

export default defineCommand({
  description:
    'Show the tokens, calls and costs of the last hour, day, week and month, and of each model and agent, in all or ' +
    'in one period. ' +
    'A call whose price is unknown is in no sum of money.',
  args: {
    period: { type: 'enum', options: [...periods], description: 'Only this period, for models and agents too' },
    ...clientArgs,
  },
  examples: [
    ['svc usage', 'sums by period, model and agent'],
    ['svc usage --period day', 'the last 24 hours'],
    ['svc usage --json | jq .agents', 'for a script'],
  ],
  async run(args) {
    const asked = args.period === undefined ? periods : periods.filter((period) => period === args.period)
    const usage = await callDaemon(await connect(args), (client) => readUsage(client, asked, args.period))
    if (args.json) printJson(usage)
    else print(render(usage, args.period))
    return exits.ok
  },
})

async function readUsage(client: DaemonClient, asked: readonly string[], period: string | undefined) {
  const query = period === undefined ? '' : `?period=${period}`
  const [totals, { models }, { agents }] = await Promise.all([
    Promise.all(asked.map((period) => client.call('GET', `/api/usage?period=${period}`, Total))),
    client.call('GET', `/api/usage/by-model${query}`, Models),
    client.call('GET', `/api/usage/agents${query}`, Agents),
  ])
  return { periods: totals, models, agents }
}

function render(
  { periods: totals, models, agents }: Awaited<ReturnType<typeof readUsage>>,
  period: string | undefined,
): string {
  const span = period === undefined ? 'IN ALL' : `LAST ${period.toUpperCase()}`
  const sums = totals.map((total) => [
    `last ${total.period}`,
    ...amounts({
      input_tokens: total.total_input_tokens,
      output_tokens: total.total_output_tokens,
      cost_usd: total.total_cost_usd,
      request_count: total.request_count,
      unpriced_requests: total.unpriced_requests,
    }),
  ])
  const byModel = models.map((row) => [`${row.provider}/${row.model}`, ...amounts(row)])
  const byAgent = agents.map((row) => [row.name ?? row.agent_id, ...amounts(row)])
  return [
    renderTable(['PERIOD', ...headings], sums),
    ...(byModel.length === 0 ? [] : [renderTable([`MODEL, ${span}`, ...headings], byModel)]),
    ...(byAgent.length === 0 ? [] : [renderTable([`AGENT, ${span}`, ...headings], byAgent)]),
  ].join('\n\n')
}

const headings = ['CALLS', 'INPUT', 'OUTPUT', 'COST', 'WITHOUT PRICE']
const amounts = (row: v.InferOutput<typeof Group>): readonly string[] => [
  String(row.request_count),
  String(row.input_tokens),
  String(row.output_tokens),
  `$${Number(row.cost_usd.toFixed(6))}`,
  row.unpriced_requests === 0 ? '' : String(row.unpriced_requests),
]
