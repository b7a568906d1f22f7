/**
 * `npm run faults [name] [-- --rounds N --seed S]`: the long forms. One JSON line a fault, exit code 1 when one
 * fails.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { automation } from './automation.ts'
import { backup } from './backup.ts'
import { channels } from './channels.ts'
import { crash } from './crash.ts'
import { delivery } from './delivery.ts'
import { migrate } from './migrate.ts'
import { peers } from './peers.ts'
import { table } from './table.ts'
import { webhooks } from './webhooks.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string' }, seed: { type: 'string', default: String(Date.now() % 1_000_000) } },
})
const seed = Number(values.seed)
const faults: Readonly<Record<string, () => Promise<Outcome> | Outcome>> = {
  crash: () => crash({ rounds: Number(values.rounds ?? 200), seed, built: true }),
  backup: () => backup({ rounds: Number(values.rounds ?? 20), seed, built: true }),
  migrate: () => migrate({ rounds: Number(values.rounds ?? 20), seed, built: true }),
  automation: () =>
    automation({ runs: 50, schedules: 20, triggers: 20, kills: Number(values.rounds ?? 30), seed, built: true }),
  webhooks: () => webhooks({ events: Number(values.rounds ?? 50) * 20, kills: 20, seed, built: true }),
  delivery: async () => {
    const rounds = Number(values.rounds ?? 100)
    const webhook = await delivery({ messages: rounds * 20, kills: 20, seed, built: true })
    const platforms = await channels({ rounds: Math.ceil(rounds / 10), seed, built: true })
    return { webhook, platforms, problems: [...webhook.problems, ...platforms.problems] }
  },
  peers: () => peers({ rounds: Number(values.rounds ?? 25), built: true }),
  // The same test as in `npm test`, with a hundred reloads.
  reload: () => {
    const { status } = spawnSync('npx', ['vitest', 'run', '--config', 'test/vitest.config.ts', 'test/faults/reload'], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, SVC_RELOADS: '100' },
    })
    return { problems: status === 0 ? [] : [`the test ended with ${status}`] }
  },
  // What a provider can do wrong, row by row: over a whole daemon, then the parts that decide with a clock that is
  // moved by hand.
  provider: () => {
    const files = [
      'test/faults/provider.test.ts',
      'test/plugins/providers/resilience.test.ts',
      'test/plugins/providers/keys.test.ts',
    ]
    const folder = mkdtempSync(join(tmpdir(), 'svc-faults-'))
    const report = join(folder, 'report.json')
    const { stderr } = spawnSync(
      'npx',
      ['vitest', 'run', '--config', 'test/vitest.config.ts', '--reporter=json', `--outputFile=${report}`, ...files],
      { encoding: 'utf8' },
    )
    const text = existsSync(report) ? readFileSync(report, 'utf8') : undefined
    rmSync(folder, { recursive: true })
    if (text === undefined) return { problems: [stderr.trim() || 'the tests did not run'] }
    const { testResults } = JSON.parse(text) as {
      testResults: readonly { readonly assertionResults: readonly Row[] }[]
    }
    const rows = testResults.flatMap(({ assertionResults }) => assertionResults)
    const name = ({ ancestorTitles, title }: Row): string => [...ancestorTitles, title].join(' | ')
    for (const row of rows) console.log(`${row.status === 'passed' ? 'ok  ' : 'FAIL'} ${name(row)}`)
    return {
      rows: rows.length,
      problems: rows
        .filter(({ status }) => status !== 'passed')
        .map((row) => `${name(row)}: ${row.failureMessages?.[0]?.split('\n')[0] ?? row.status}`),
    }
  },
}
for (const [name, { run, long, lacks }] of Object.entries(table)) {
  Object.assign(faults, {
    [name]: () =>
      lacks === undefined
        ? run({ rounds: Number(values.rounds ?? long), seed, built: true })
        : { problems: [`needs ${lacks}`] },
  })
}
interface Outcome {
  readonly problems: readonly string[]
}
interface Row {
  readonly ancestorTitles: readonly string[]
  readonly title: string
  readonly status: string
  readonly failureMessages?: readonly string[]
}
const names = positionals.length > 0 ? positionals : Object.keys(faults)
for (const name of names) {
  const run = faults[name]
  if (!run) {
    console.error(`no such fault: ${name}; there are: ${Object.keys(faults).join(', ')}`)
    process.exit(2)
  }
  const report = await run()
  console.log(JSON.stringify({ fault: name, passed: report.problems.length === 0, ...report }))
  if (report.problems.length > 0) process.exitCode = 1
}
