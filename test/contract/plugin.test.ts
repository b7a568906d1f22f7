import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AnyPlugin } from '../../core/host/define.ts'
import { providedIds, requiredIds } from '../../core/host/definition.ts'
import { builtInFolders } from '../../core/host/folders.ts'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import { cycleChecks, growsInNone, pluginChecks } from './plugin.ts'
import type { Subject } from './plugin.ts'

const plugins = await Promise.all(
  (await builtInFolders()).map(async (folder) => {
    const { default: definition } = (await import(`${folder}/index.ts`)) as { default: AnyPlugin }
    return { folder, name: definition.name, definition }
  }),
)
const required = new Set(plugins.flatMap(({ definition }) => requiredIds(definition)))
/** Each time that one of these is set up, so are all that require it. */
const foundations = plugins.filter(({ definition }) => providedIds(definition).some((id) => required.has(id)))
const others = plugins.filter((plugin) => !foundations.includes(plugin))
/** Most plugins require it, themselves or through another. */
const WIDEST = 'audit'

const GROUP = 6
function inGroups(subjects: readonly Subject[]) {
  return Array.from({ length: Math.ceil(subjects.length / GROUP) }, (_, at) => {
    const group = subjects.slice(at * GROUP, (at + 1) * GROUP)
    return { group, names: group.map(({ name }) => name).join(', ') }
  })
}

/** Unloads and reloads each of the plugins many times. */
function testCycles(subjects: readonly Subject[], hostOf: () => TestHost): void {
  describe.each(subjects)('$name', (subject) => {
    it.each(Object.entries(cycleChecks))('%s', async (_id, check) => {
      await check(hostOf(), subject)
    })
  })
  // One after the other: nothing that frees memory comes between two measurements.
  it.each(inGroups(subjects))(
    'can be reloaded twenty times without growth of the heap or of what is registered: $names',
    ({ group }) => growsInNone(hostOf(), group),
  )
}

describe('the contract of plugins', () => {
  let host: TestHost
  beforeAll(async () => {
    host = await startHost({ config: { pairing: { enabled: true } } })
    // Skills are read once the daemon listens, and their tools are registered then.
    expect((await host.json('GET', '/api/skills')).status).toBe(200)
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
  })

  describe.each(plugins)('$name', (subject) => {
    it.each(Object.entries(pluginChecks))('%s', async (_id, check) => {
      await check(host, subject)
    })
  })
  testCycles(others, () => host)
  describe('with all that require it', () => {
    testCycles(
      plugins.filter(({ name }) => name === WIDEST),
      () => host,
    )
  })
})

// With all others each cycle of each of them would set most plugins up, which the cycles of those and of the widest do.
describe('the contract of plugins that others require, among each other', () => {
  let host: TestHost
  beforeAll(async () => {
    host = await startHost({ plugins: foundations.map(({ folder }) => folder) })
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
  })

  testCycles(foundations, () => host)
})

describe('the contract suite fails a plugin that', () => {
  const broken = (name: string) => fileURLToPath(new URL(`../fixtures/broken/${name}`, import.meta.url))
  const failing = async (name: string, check: string, message: string | RegExp): Promise<void> => {
    await using host = await startHost({ plugins: [broken(name)], config: { plugins: { drain_ms: 10 } } })
    const run = { ...pluginChecks, ...cycleChecks }[check]
    if (!run) throw new Error(`there is no check "${check}"`)
    await expect(run(host, { name, folder: broken(name) })).rejects.toThrow(message)
  }

  it('starts a timer that nothing owns', () =>
    failing(
      'leaky-timer',
      'leaves no route, hook, tool, timer, socket or handle when it is unloaded',
      'left behind: resource Timeout',
    ))
  it('listens to the process', () =>
    failing(
      'leaky-listener',
      'leaves no route, hook, tool, timer, socket or handle when it is unloaded',
      'process listener SIGUSR2',
    ))
  it('keeps memory of every copy, among others that do not', async () => {
    const plugins = ['audit', broken('leaky-memory')]
    await using host = await startHost({ plugins, config: { plugins: { drain_ms: 10 } } })
    const group = [{ name: 'audit' }, { name: 'leaky-memory' }]
    await expect(growsInNone(host, group)).rejects.toThrow(/leaky-memory: the heap grew by/)
  })
  it('throws in setup', () =>
    failing(
      'throws-in-setup',
      'is loaded without an error',
      'throws-in-setup is failed, not loaded: setup failed: the setup of this plugin fails',
    ))
  it('ignores the abort signal', () =>
    failing(
      'ignores-abort',
      'leaves no route, hook, tool, timer, socket or handle when it is unloaded',
      /ignored the abort signal/,
    ))
})
