import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { prepareHome } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/** The program, from `SCHEMATHESIS` or the folders for programs. */
const program = [
  process.env['SCHEMATHESIS'],
  ...(process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'schemathesis')),
].find((file) => {
  if (file === undefined || file === '') return false
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
})
export const hasSchemathesis = program !== undefined

/** What ends the daemon, replaces its data or its keys, or never ends by itself. */
const LEFT = String.raw`/(shutdown|restart|restore|logs/stream)$|/oauth/|^/api/config/(set|reload)$|^/api/catalog/`
/** What an answer may be: a provider that has no key and a receiver nobody reaches are not faults of the daemon. */
const CONFIGURATION = '[checks]\nnot_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "502", "503"]\n'
const CHECKS = 'not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance'
const MOST_MS = 3_600_000

/**
 * Schemathesis against the daemon's own OpenAPI document: no status and no type it does not tell of, no body that
 * breaks its schema.
 */
export async function schemathesis({ built, rounds, seed }: FaultOptions): Promise<FaultReport> {
  if (program === undefined) return { problems: ['needs schemathesis'] }
  using home = await prepareHome({ built }, { SVC_PAIRING__ENABLED: 'true' })
  await using daemon = await home.start()
  const folder = mkdtempSync(join(tmpdir(), 'svc-schemathesis-'))
  try {
    writeFileSync(join(folder, 'schemathesis.toml'), CONFIGURATION)
    const child = spawn(
      program,
      [
        'run',
        `${daemon.url}/api/openapi.json`,
        '--no-color',
        '--no-shrink',
        '--continue-on-failure',
        ...Object.entries({
          workers: 1,
          phases: rounds > 1 ? 'examples,coverage,fuzzing' : 'examples',
          checks: CHECKS,
          seed,
          warnings: 'off',
          'max-examples': rounds,
          'exclude-path-regex': LEFT,
          'request-timeout': 60,
          'max-failures': 1000,
          'suppress-health-check': 'all',
          'generation-database': 'none',
        }).flatMap(([option, value]) => [`--${option}`, String(value)]),
      ],
      { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], timeout: MOST_MS },
    )
    const [said, complained, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    const [, cases] = /(\d+) generated/.exec(said) ?? []
    const problems = said
      .split(/^(?=_{3,} .+ _{3,}$)|^={3,}.*$/m)
      .filter((block) => block.startsWith('___'))
      .map((block) => block.replaceAll(/_{3,}/g, '').replaceAll(/\s+/g, ' ').trim().slice(0, 800))
    if (code !== 0 && !/^={3,} FAILURES ={3,}$/m.test(said))
      problems.push(`schemathesis ended with ${String(code)}: ${`${complained}${said}`.slice(-800)}`)
    return { problems, seed, cases: Number(cases ?? 0) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
