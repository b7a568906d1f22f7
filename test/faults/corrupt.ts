import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { generator } from './crash.ts'
import { call, prepareHome, Writer } from './home.ts'
import type { Home } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'

type Damage = readonly [name: string, damage: (home: string, random: () => number) => void]
const database = (home: string): string => join(home, 'data', 'svc.db')
function noise(file: string, at: number, bytes: number, random: () => number): void {
  const content = readFileSync(file)
  for (let index = at; index < Math.min(content.length, at + bytes); index++)
    content[index] = Math.floor(random() * 256)
  writeFileSync(file, content)
}
const damages: readonly Damage[] = [
  [
    'noise in a page',
    (home, random) =>
      noise(
        database(home),
        4096 * (1 + Math.floor(random() * (statSync(database(home)).size / 4096 - 1))),
        1024,
        random,
      ),
  ],
  ['noise in the head', (home, random) => noise(database(home), 0, 100, random)],
  ['an empty database', (home) => truncateSync(database(home), 0)],
  ['half a database', (home) => truncateSync(database(home), Math.floor(statSync(database(home)).size / 2))],
  ['no database where there was one', (home) => rmSync(database(home))],
  [
    'half a log of the database',
    (home) => truncateSync(`${database(home)}-wal`, Math.floor(statSync(`${database(home)}-wal`).size / 2)),
  ],
  ['a broken configuration', (home) => writeFileSync(join(home, 'config.toml'), 'log_level = "info\n[[[')],
  ['half a vault key', (home) => truncateSync(join(home, 'vault.key'), 10)],
  ['a forged anchor', (home) => writeFileSync(join(home, 'audit.anchor'), '{"count":1,"tip_hash":"00","hmac":"00"}')],
]

/** Settles when the anchor of a home knows of this entry. */
async function anchored(home: string, id: number): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const file = join(home, 'audit.anchor')
    if (existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).count >= id) return
    await delay(100)
  }
  throw new Error(`the anchor does not know of entry ${id}`)
}

/**
 * Files are damaged while the daemon is down: it says so, or goes on with everything; it never makes an empty
 * database in silence.
 */
export async function corrupt({ built, rounds, seed }: FaultOptions): Promise<FaultReport> {
  const random = generator(seed)
  using sound = await prepareHome({ built })
  const writer = new Writer(sound.agent)
  {
    await using daemon = await sound.start()
    // Enough for a hundred pages, so that noise hits rows as well as indexes.
    for (let count = 0; count < 60; count++) {
      await call(daemon, 'PUT', `/api/memory/agents/${sound.agent}/kv/filler-${count}`, { value: 'x'.repeat(6_000) })
      await writer.write(daemon)
    }
    // Killed, so that the newest rows are in the log of the database and nowhere else; the anchor knows of them by
    // then.
    const { body } = await call(daemon, 'GET', '/api/audit/recent?limit=1')
    await anchored(sound.path, body.entries[0].id)
    await daemon.kill()
  }
  const problems: string[] = []
  const outcomes: Record<string, number> = {}
  for (let round = 0; round < rounds; round++) {
    const [name, damage] = damages[round % damages.length] as Damage
    const path = mkdtempSync(join(tmpdir(), 'svc-corrupt-'))
    try {
      cpSync(sound.path, path, { recursive: true })
      damage(path, random)
      const damaged = existsSync(database(path)) ? readFileSync(database(path)) : undefined
      const outcome = await boot(
        { ...sound, path, start: (options) => sound.start({ ...options, home: path }) },
        writer,
      )
      outcomes[`${name}: ${outcome.kind}`] = (outcomes[`${name}: ${outcome.kind}`] ?? 0) + 1
      for (const problem of outcome.problems) problems.push(`${name}: ${problem}`)
      if (outcome.leaves && damaged && !(existsSync(database(path)) && readFileSync(database(path)).equals(damaged)))
        problems.push(`${name}: the damaged database was changed`)
    } finally {
      rmSync(path, { recursive: true, force: true })
    }
  }
  return { rounds, outcomes, problems: [...new Set(problems)].slice(0, 8) }
}

async function boot(
  home: Home,
  writer: Writer,
): Promise<{
  readonly kind: 'refused' | 'served'
  /** It says that it left the database as it is. */ readonly leaves: boolean
  readonly problems: string[]
}> {
  const problems: string[] = []
  try {
    await using daemon = await home.start()
    // It serves: then with all that was acknowledged, or saying that something is wrong.
    const agents = await call(daemon, 'GET', '/api/agents').catch(() => undefined)
    const found = await writer.check(daemon).catch((error: unknown) => String(error))
    const { body: health } = await call(daemon, 'GET', '/api/health/detail')
    const warned =
      health.status !== 'ok' ||
      (health.config_warnings ?? []).length > 0 ||
      /damaged|malformed|corrupt|anchor|forged/i.test(daemon.output())
    if (agents?.status === 200 && !agents.body.some(({ id }: { id: string }) => id === home.agent) && !warned)
      problems.push('it serves without the agent and says nothing')
    if (found !== undefined && !warned) problems.push(`it serves, says nothing, and ${found}`)
    await daemon.stop()
    return { kind: 'served', leaves: false, problems }
  } catch (error) {
    const text = String(error)
    if (!/ended before it listened/.test(text)) throw error
    if (/\n\s+at .*:\d+:\d+/.test(text)) problems.push(`it refuses with a stack: ${text.slice(0, 300)}`)
    if (!/svc restore \S|config\.toml:\d|vault\.key|remove that file/.test(text))
      problems.push(`it refuses without saying what to do: ${text.slice(-300)}`)
    return { kind: 'refused', leaves: text.includes('left as it is'), problems }
  }
}
