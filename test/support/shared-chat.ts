import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ManualTimer } from '../../core/jobs/manual-timer.ts'
import { openChat } from './chat-stage.ts'
import type { ChatStage } from './chat-stage.ts'
import { startFakeProvider } from './fake-provider.ts'
import type { FakeProvider } from './fake-provider.ts'
import { createTestDatabase } from './postgres-server.ts'
import type { TestDatabase } from './postgres-server.ts'

const launcher = fileURLToPath(new URL('../fixtures/plugins/launcher', import.meta.url))

/** A daemon among several on one PostgreSQL database. */
export interface SharedStage extends ChatStage {
  readonly name: string
  /** Of its membership: moved by hand, so that no daemon is declared dead unless a test lets it stand still. */
  readonly timer: ManualTimer
}
export interface SharedChat extends AsyncDisposable {
  readonly fake: FakeProvider
  readonly database: TestDatabase
  /** Where the tool `launch` of every daemon writes what it launched, a line each. */
  readonly launches: string
  /** One more daemon, on a home of its own. */
  start(name: string, config?: Record<string, unknown>): Promise<SharedStage>
}

/** Daemons on one PostgreSQL database whose agents talk to one fake provider. The database is dropped at the end. */
export async function openSharedChat(given?: TestDatabase): Promise<SharedChat> {
  const database = given ?? (await createTestDatabase())
  const fake = await startFakeProvider()
  const folder = await mkdtemp(join(tmpdir(), 'svc-shared-'))
  const launches = join(folder, 'launches.log')
  const stages: SharedStage[] = []
  return {
    fake,
    database,
    launches,
    async start(name, config = {}) {
      const home = join(folder, name)
      await mkdir(home, { mode: 0o700 })
      await writeFile(join(home, 'vault.key'), 'ab'.repeat(32), { mode: 0o600 })
      await cp(launcher, join(home, 'plugins', 'launcher'), { recursive: true })
      const timer = new ManualTimer(Date.parse('2026-01-01T00:00:00Z'))
      const stage = await openChat({
        fake,
        home,
        config: {
          database_url: database.url,
          ...config,
          plugins: { launcher: { file: launches }, ...Object(config['plugins']) },
        },
        jobTimer: () => timer,
      })
      const shared = { ...stage, name, timer, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
      stages.push(shared)
      return shared
    },
    async [Symbol.asyncDispose]() {
      try {
        for (const stage of stages.toReversed()) await stage[Symbol.asyncDispose]()
      } finally {
        await fake[Symbol.asyncDispose]()
        await database[Symbol.asyncDispose]()
        await rm(folder, { recursive: true, force: true })
      }
    },
  }
}
