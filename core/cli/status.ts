import * as v from 'valibot'
import { clientArgs, defineCommand } from './command.ts'
import { callDaemon, connect } from './connect.ts'
import type { Connection } from './connect.ts'
import { exits } from './failure.ts'
import { note, print, printJson, renderDuration, renderFacts } from './output.ts'
import { messageOf } from '../errors/message.ts'
import { DaemonRefusal } from '../net/daemon-client.ts'
import type { DaemonClient } from '../net/daemon-client.ts'
import { commandLine } from '../process/command-name.ts'

const Status = v.looseObject({ status: v.string(), uptime_seconds: v.number(), data_dir: v.optional(v.string()) })
const Version = v.looseObject({ version: v.string() })
const Detail = v.looseObject({
  status: v.string(),
  panic_count: v.optional(v.number(), 0),
  database: v.optional(v.string(), ''),
  config_warnings: v.optional(v.array(v.string()), []),
})
const Health = v.looseObject({ status: v.string(), uptime_seconds: v.number() })
type Fact = readonly [name: string, value: string]

export default defineCommand({
  description:
    'Show whether the daemon runs, its health and its warnings. The exit code is 0 when it is well, 1 when not.',
  args: clientArgs,
  examples: [
    ['svc status', 'the daemon of the home'],
    ['svc status --json', 'the same for scripts'],
    ['svc status --url http://127.0.0.1:4545', 'a daemon by its address'],
  ],
  async run(args) {
    const connection = await connect(args)
    const { client, pid } = connection
    const answers = await callDaemon(connection, () => askAll(client))
    if (answers.problem !== undefined) {
      const { health, problem } = answers
      if (args.json) printJson({ running: true, url: client.url, pid: pid ?? null, health, problem })
      else print(renderFacts(describePart(connection, health, problem)))
      return exits.failed
    }
    const { status, health, version } = answers
    if (args.json) printJson({ running: true, url: client.url, pid: pid ?? null, version, ...status, health })
    else {
      const facts: Fact[] = [
        ['svc', `${version}, ${health.status}, up ${renderDuration(status.uptime_seconds)}`],
        ['address', client.url],
      ]
      if (pid !== undefined) facts.push(['process', String(pid)])
      facts.push(...(await readPluginFacts(connection, status)))
      facts.push(['database', describeDatabase(health.database)], ['data', status.data_dir ?? ''])
      if (health.panic_count > 0) facts.push(['defects', `${health.panic_count} since the start; the log has them`])
      for (const warning of health.config_warnings) facts.push(['warning', warning])
      print(renderFacts(facts))
    }
    return health.status === 'ok' ? exits.ok : exits.failed
  },
})

type Answers =
  | {
      readonly problem: undefined
      readonly status: v.InferOutput<typeof Status>
      readonly health: v.InferOutput<typeof Detail>
      readonly version: string
    }
  | { readonly problem: string; readonly health: v.InferOutput<typeof Health> }

/** A daemon that hangs is asked about, too. */
const soon = { timeoutMs: 10_000 }

/** What needs no database is known also while that is away. */
async function askAll(client: DaemonClient): Promise<Answers> {
  try {
    const [status, health, { version }] = await Promise.all([
      client.call('GET', '/api/status', Status, soon),
      client.call('GET', '/api/health/detail', Detail, soon),
      client.call('GET', '/api/version', Version, soon),
    ])
    return { problem: undefined, status, health, version }
  } catch (error) {
    if (!(error instanceof DaemonRefusal) || error.status !== 503) throw error
    return { health: await client.call('GET', '/api/health', Health, soon), problem: error.message }
  }
}

function describePart({ client, pid }: Connection, health: v.InferOutput<typeof Health>, problem: string): Fact[] {
  return [
    ['svc', `${health.status}, up ${renderDuration(health.uptime_seconds)}`],
    ['address', client.url],
    ...(pid === undefined ? [] : [['process', String(pid)] as const]),
    ['problem', `${problem}; ${commandLine('doctor')} says more`],
  ]
}

function describeDatabase(state: string): string {
  return state === 'connected'
    ? state
    : `${state}: start its server or free its disk; ${commandLine('doctor')} says more`
}

/** What plugins say of the answer; a plugin that fails costs only its own lines. */
async function readPluginFacts(
  { location, client }: Connection,
  status: v.InferOutput<typeof Status>,
): Promise<Fact[]> {
  const { loadRegistry } = await import('./command-registry.ts')
  const { plugins, problems } = await loadRegistry(location)
  for (const problem of problems) note(`svc: warning: ${problem}`)
  const facts: Fact[] = []
  for (const { name, status: part } of plugins) {
    if (!part) continue
    try {
      facts.push(...(await (await part.load()).default(status, client)))
    } catch (error) {
      const reason = messageOf(error)
      note(`svc: warning: the status of plugin "${name}" is left out: ${reason}`)
    }
  }
  return facts
}
