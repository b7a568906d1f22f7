import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
  renderTime,
} from 'svc/cli'

const Security = v.looseObject({
  security_systems: v.record(v.string(), v.string()),
  total_systems: v.number(),
  all_active: v.boolean(),
  checked_at: v.nullable(v.string()),
  probes: v.record(
    v.string(),
    v.looseObject({
      failures: v.optional(v.array(v.string()), []),
      evidence: v.optional(v.string(), ''),
      enforcement_count: v.optional(v.number(), 0),
      last_blocked_at: v.nullish(v.string()),
    }),
  ),
})

export default defineCommand({
  description:
    'Show the state of each security system as its probe found it, and what it refused since the start. ' +
    'The exit code is 0 when all are active, 1 when not.',
  args: clientArgs,
  examples: [
    ['svc security', 'all systems'],
    ["svc security --json | jq '.security_systems'", 'for a script'],
  ],
  async run(args) {
    const security = await callDaemon(await connect(args), (client) => client.call('GET', '/api/security', Security))
    if (args.json) printJson(security)
    else print(render(security))
    return security.all_active ? exits.ok : exits.failed
  },
})

function render({ security_systems: systems, probes, checked_at: at, ...all }: v.InferOutput<typeof Security>): string {
  const entries = Object.entries(systems)
  const active = entries.filter(([, state]) => state === 'active').length
  const rows = entries.map(([system, state]) => {
    const probe = probes[system]
    return [system, state, String(probe?.enforcement_count ?? 0), renderTime(probe?.last_blocked_at ?? null)]
  })
  const problems = entries
    .filter(([, state]) => state !== 'active')
    .map(([system, state]) => {
      const { failures = [], evidence = '' } = probes[system] ?? {}
      const why = failures.length > 0 ? failures.join('; ') : evidence
      return `${system} is ${state}${why === '' ? '' : `: ${why}`}`
    })
  return [
    renderTable(['SYSTEM', 'STATE', 'REFUSED', 'LAST'], rows),
    '',
    ...problems.map((line) => escapeControls(line)),
    all.all_active
      ? `All ${entries.length} are active; tried ${renderTime(at, 'second')}.`
      : `${active} of ${entries.length} are active; tried ${at === null ? 'none yet' : renderTime(at, 'second')}.`,
  ].join('\n')
}
