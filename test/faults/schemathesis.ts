import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { prepareHome } from './home.ts'
import type { DaemonProcess } from '../support/daemon.ts'
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

/** Operations that end the daemon, or replace its data or its keys. */
const EXCLUDED = String.raw`/(shutdown|restart|restore)$|/oauth/|^/api/config/(set|reload)$|^/api/catalog/`
/** A provider without a key and a receiver that cannot be reached are not faults of the daemon. */
const CONFIGURATION = '[checks]\nnot_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "502", "503"]\n'
const CHECKS = 'not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance'
const TIMEOUT_MS = 3_600_000

interface ApiDocument {
  readonly paths: Readonly<Record<string, { readonly get?: { readonly responses: object } }>>
}
/** A pattern for the feeds: an answer that never ends would hold up the run, and heartbeats keep it from timing out. */
async function feedPattern(daemon: Pick<DaemonProcess, 'url'>): Promise<string> {
  const document = (await (await fetch(`${daemon.url}/api/openapi.json`)).json()) as ApiDocument
  return Object.entries(document.paths)
    .filter(([, { get }]) => JSON.stringify(get?.responses ?? {}).includes('text/event-stream'))
    .map(([path]) => `^${path.replaceAll(/[{}]/g, String.raw`\$&`)}$`)
    .join('|')
}

/**
 * Schemathesis against the daemon's own OpenAPI document: every status and content type is documented, every body
 * matches its schema.
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
          'exclude-path-regex': `${EXCLUDED}|${await feedPattern(daemon)}`,
          'request-timeout': 60,
          'max-failures': 1000,
          'suppress-health-check': 'all',
          'generation-database': 'none',
        }).flatMap(([option, value]) => [`--${option}`, String(value)]),
      ],
      { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], timeout: TIMEOUT_MS },
    )
    const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    const [, cases] = /(\d+) generated/.exec(output) ?? []
    const problems = output
      .split(/^(?=_{3,} .+ _{3,}$)|^={3,}.*$/m)
      .filter((block) => block.startsWith('___'))
      .map((block) => block.replaceAll(/_{3,}/g, '').replaceAll(/\s+/g, ' ').trim().slice(0, 800))
    if (code !== 0 && !/^={3,} FAILURES ={3,}$/m.test(output))
      problems.push(`schemathesis ended with ${String(code)}: ${`${errors}${output}`.slice(-800)}`)
    return { problems, seed, cases: Number(cases ?? 0) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
