import { createHook } from 'node:async_hooks'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import Sqlite from 'better-sqlite3'
import { expect } from 'vitest'
import type { TestHost } from '../support/host.ts'

/** The plugin under test: its name, and the folder of its source. */
export interface Subject {
  readonly name: string
  readonly folder: string
}

/**
 * Timers of the test runner come and go, a few at a time, before and after; what a plugin leaves adds up with every
 * cycle.
 */
const CYCLES = 8
/** Tries, and the time they take, to find nothing left. */
const SETTLING_TRIES = 100
const SETTLING_MS = 6000
/** Bytes that the heap may grow by in twenty reloads. */
const MAX_GROWTH = 20 * 100_000

type Checks = Readonly<Record<string, (host: TestHost, subject: Subject) => Promise<void>>>
/**
 * What every plugin must keep. Each check fails with an error that says what was left; the host has the plugin and
 * all it requires.
 */
export const pluginChecks: Checks = {
  'is loaded without an error': async (host, { name }) => {
    expectState(host, name, 'loaded')
  },

  'does not touch the tables of others when it is unloaded': async (host, { name }) => {
    const own = [name, ...dependents(host, name)].map((plugin) => `${plugin.replaceAll('-', '_')}_`)
    const others = () =>
      tables(host)
        .filter((line) => !own.some((prefix) => line.startsWith(prefix)) && !line.startsWith('core_'))
        // That the plugin was unloaded has an entry.
        .map((line) => (line.startsWith('audit_') ? withoutCount(line) : line))
    const before = others()
    await host.app.host.unload(name)
    expect(others()).toEqual(before)
    await host.app.host.reload(name)
    expect(others().map(withoutCount)).toEqual(before.map(withoutCount))
  },

  'leaves nothing behind when its setup throws at the end': async (host, { name, folder: source }) => {
    await host.app.host.unload(name)
    const before = await traces(host)
    const folder = await throwing(host, name, source)
    for (let cycle = 0; cycle < CYCLES; cycle++)
      await expect(host.app.host.load(folder)).rejects.toThrow('setup failed: planned')
    await settled(host, before)
    await host.app.host.sync(await emptied(folder))
    await host.app.host.reload(name)
    expectState(host, name, 'loaded')
  },
}

/** The same, of being unloaded and loaded many times. */
export const cycleChecks: Checks = {
  'leaves no route, hook, tool, timer, socket or handle when it is unloaded': async (host, { name }) => {
    await leavesNothing(host, name, CYCLES)
  },
}

/**
 * Fails with the plugin that cannot be reloaded twenty times without growth of the heap or of what is registered. A
 * collection takes a tenth of a second, so the heap is measured once for all of them; each is measured by itself when
 * together they grow by more than one may.
 */
export async function growsInNone(host: TestHost, subjects: readonly Pick<Subject, 'name'>[]): Promise<void> {
  // What was measured before is taken: whatever grew since counts against these unless they are measured singly.
  const before = measured.get(host) ?? heapBytes()
  for (const { name } of subjects) {
    await reload(host, name, 3)
    const registered = host.app.registrations()
    const ledger = statusOf(host, name)?.ledger
    await reload(host, name, 20)
    expectState(host, name, 'loaded')
    expect(statusOf(host, name)?.ledger).toEqual(ledger)
    expect(host.app.registrations(), `registered after 20 reloads of ${name}`).toEqual(registered)
  }
  const after = heapBytes()
  measured.set(host, after)
  if (after - before < MAX_GROWTH) return
  for (const { name } of subjects) await growsNot(host, name)
}
async function growsNot(host: TestHost, name: string): Promise<void> {
  const before = measured.get(host) ?? heapBytes()
  await reload(host, name, 20)
  let after = heapBytes()
  // What waits for a finalizer outlives one collection and not the next.
  if (after - before >= MAX_GROWTH) after = heapBytes()
  measured.set(host, after)
  const grown = after - before
  expect(grown, `${name}: the heap grew by ${Math.round(grown / 1024)} KB in 20 reloads`).toBeLessThan(MAX_GROWTH)
}
async function reload(host: TestHost, name: string, times: number): Promise<void> {
  for (let time = 0; time < times; time++) await host.app.host.reload(name)
}

/** Unloads and loads the plugin many times; throws with what it leaves each time. Its state at the end is `loaded`. */
export async function leavesNothing(host: TestHost, name: string, cycles: number): Promise<void> {
  await host.app.host.unload(name)
  const before = await traces(host)
  using made = countMade()
  for (let cycle = 0; cycle < cycles; cycle++) {
    await host.app.host.reload(name)
    expectState(host, name, 'loaded')
    await host.app.host.unload(name)
    expectState(host, name, 'disabled')
    expect(statusOf(host, name)?.ledger).toEqual([])
  }
  await settled(host, before, cycles, made.alive)
  await host.app.host.reload(name)
}

/**
 * Counts timers and handles that were made since, the unreferenced included, which `getActiveResourcesInfo` leaves out.
 */
function countMade(): Disposable & { readonly alive: () => readonly string[] } {
  const kinds = new Map<number, string>()
  const hook = createHook({
    trackPromises: false,
    init(id, kind) {
      if (kind === 'Timeout' || /WRAP$|^(WORKER|MESSAGEPORT)$/.test(kind)) if (!/REQ/.test(kind)) kinds.set(id, kind)
    },
    destroy(id) {
      kinds.delete(id)
    },
  }).enable()
  return {
    alive: () => [...kinds.values()],
    [Symbol.dispose]() {
      hook.disable()
    },
  }
}

function statusOf(host: TestHost, name: string) {
  return host.app.daemon.plugins().find((plugin) => plugin.name === name)
}
function expectState(host: TestHost, name: string, state: string): void {
  const status = statusOf(host, name)
  if (status?.state !== state || status.error !== undefined)
    throw new Error(`${name} is ${status?.state}, not ${state}: ${status?.error ?? 'no error'}`)
}
function dependents(host: TestHost, name: string): readonly string[] {
  const plugins = host.app.daemon.plugins()
  const found = new Set([name])
  for (let size = 0; size !== found.size;) {
    size = found.size
    const ids = new Set(plugins.filter((plugin) => found.has(plugin.name)).flatMap((plugin) => plugin.provides))
    for (const plugin of plugins) if (plugin.requires.some((id) => ids.has(id))) found.add(plugin.name)
  }
  return [...found]
}

/** What is registered, what keeps the process alive and who listens to it: how often each. */
async function traces(host: TestHost): Promise<ReadonlyMap<string, number>> {
  // What a request or a write of before has left comes to rest.
  for (let turn = 0; turn < 10; turn++)
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
  const counts = new Map<string, number>()
  const count = (line: string, times = 1): void => {
    counts.set(line, (counts.get(line) ?? 0) + times)
  }
  for (const line of host.app.registrations()) count(line)
  for (const event of process.eventNames()) count(`process listener ${String(event)}`, process.listenerCount(event))
  // Work of the thread pool comes and goes; a handle that stays is what leaks.
  for (const name of process.getActiveResourcesInfo())
    if (!/^(FSReq|Immediate|GetAddrInfo)|Request$/i.test(name)) count(`resource ${name}`)
  return counts
}
/**
 * Throws with what is there now and was not before the cycles. Some handles need a turn of the loop to close, and the
 * pipes of a process that was ended as long as the system takes for it.
 */
async function settled(
  host: TestHost,
  before: ReadonlyMap<string, number>,
  cycles = CYCLES,
  alive: () => readonly string[] = () => [],
): Promise<void> {
  let left: readonly string[] = []
  for (let attempt = 0; attempt < SETTLING_TRIES; attempt++) {
    if (attempt > 20) await setTimeout(SETTLING_MS / SETTLING_TRIES)
    left = [...(await traces(host))]
      .filter(([line, times]) => times > (before.get(line) ?? 0) + (line.startsWith('resource') ? cycles / 2 : 0))
      .map(([line]) => line)
    const kinds = alive()
    const made = [...new Set(kinds)].filter((kind) => kinds.filter((one) => one === kind).length > cycles / 2)
    left = [...left, ...made.map((kind) => `made ${kind}`)]
    if (left.length === 0) return
  }
  throw new Error(`left behind: ${left.join(', ')}`)
}

const withoutCount = (line: string): string => line.replace(/ \d+ rows$/, '')
function tables(host: TestHost): readonly string[] {
  const db = new Sqlite(join(host.home, 'data', 'svc.db'), { readonly: true })
  try {
    const found = db
      .prepare(`SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
      .all() as { name: string; sql: string }[]
    return found.map(
      ({ name, sql }) =>
        `${name} ${sql} ${(db.prepare(`SELECT count(*) AS count FROM "${name}"`).get() as { count: number }).count} rows`,
    )
  } finally {
    db.close()
  }
}

/** Bytes of the heap after the reloads before. */
const measured = new WeakMap<TestHost, number>()
let collect: (() => void) | undefined
function heapBytes(): number {
  if (!collect) {
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('gc') as () => void
  }
  collect()
  return getHeapStatistics().used_heap_size
}

/** The plugin as it is, with a setup that fails when everything is registered. */
async function throwing(host: TestHost, name: string, source: string): Promise<string> {
  const folder = join(host.home, 'throwing', name)
  await mkdir(folder, { recursive: true })
  await writeFile(
    // Not TypeScript, which would be made JavaScript again for the place of every error.
    join(folder, 'index.js'),
    `import plugin from ${JSON.stringify(join(source, 'index.ts'))}
// Only an unrestricted plugin may have the name of a built-in one.
const { uses, ...unrestricted } = plugin
export default { ...unrestricted, async setup(ctx) { await plugin.setup(ctx); throw new Error('planned') } }
`,
  )
  return folder
}
async function emptied(folder: string): Promise<string> {
  await rm(folder, { recursive: true })
  return folder
}
