import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { code, resolveImport, root, sources } from './sources.ts'

/** What is imported to be evaluated, as opposed to types and to what is imported later. */
const statement = /(?:^|\n)\s*(?:import|export)\s(?!type\b)(?:[^'"`;]*?\sfrom\s*)?['"]([^'"]+)['"]/g

const files = new Map(sources('core', 'plugins', 'adapters').map((file) => [file.path, code(file.text)]))
const entries = [
  'core/cli/main.ts',
  'core/cli/run.ts',
  'core/cli/start.ts',
  'core/cli/serve.ts',
  'core/sdk.ts',
  ...[...files.keys()].filter((path) => /^(plugins\/[^/]+|adapters\/\w+\/[^/]+)\/index\.ts$/.test(path)),
]

/** The files a start evaluates, and the modules from elsewhere that they import. */
function startOf(from: readonly string[]): {
  readonly own: ReadonlySet<string>
  readonly foreign: ReadonlySet<string>
} {
  const own = new Set<string>()
  const foreign = new Set<string>()
  const visit = (path: string): void => {
    if (own.has(path)) return
    own.add(path)
    for (const [, specifier = ''] of (files.get(path) ?? '').matchAll(statement)) {
      if (specifier.startsWith('.')) visit(resolveImport(path, specifier))
      else foreign.add(specifier)
    }
  }
  for (const path of from) visit(path)
  return { own, foreign }
}

const start = startOf(entries)

describe('what a start evaluates', () => {
  it('all of it is found', () => {
    expect([...start.own].filter((path) => !existsSync(join(root, path)))).toEqual([])
    expect(start.own.size).toBeGreaterThan(300)
  })

  it('few packages: the others are imported by the function that needs them', () => {
    const packages = [...start.foreign]
      .filter((name) => !name.startsWith('node:') && !name.startsWith('svc/'))
      .toSorted()
    expect(packages).toEqual([
      'better-sqlite3',
      'citty',
      'consola/core',
      'db0/connectors/better-sqlite3',
      'eventsource-parser',
      'hookable',
      'rou3',
      'unstorage',
      'unstorage/drivers/fs-lite',
      'uuid',
      'valibot',
    ])
  })

  it('only these modules of Node', () => {
    const builtins = [...start.foreign].filter((name) => name.startsWith('node:')).toSorted()
    expect(builtins).toEqual([
      'node:async_hooks',
      'node:buffer',
      'node:crypto',
      'node:diagnostics_channel',
      'node:dns/promises',
      'node:fs',
      'node:fs/promises',
      'node:module',
      'node:net',
      'node:os',
      'node:path',
      'node:stream',
      'node:timers/promises',
      'node:url',
      'node:util',
      'node:worker_threads',
    ])
  })

  it('no more source than this: routes and behaviour that a start does not need are imported on first use', () => {
    // Indentation is the formatter's and does not reach the bundle.
    const chars = (path: string): number => (files.get(path) ?? '').replace(/^ +/gm, '').length
    const kilobytes = [...start.own].reduce((sum, path) => sum + chars(path), 0) / 1000
    expect(kilobytes).toBeLessThan(2_072)
  })

  it('what runs a turn, the calls of its tools and sockets is not among it: the first one loads it', () => {
    const later = ['loop', 'model-caller', 'progress', 'resume', 'runner', 'tool-executor', 'tool-step']
    const chat = [...later.map((name) => `turn/${name}`), 'context/history', 'context/request', 'context/window']
    const names = [...chat.map((name) => `plugins/chat/${name}.ts`), 'core/http/upgrade.ts', 'core/http/socket.ts']
    expect(names.filter((name) => start.own.has(name))).toEqual([])
    expect(names.filter((name) => !files.has(name))).toEqual([])
  })

  it('data, probes and what programs are called with are not among it', () => {
    expect(
      [...start.own].filter((path) =>
        /\/probes?\/|\/probe\.ts$|-probe\.ts$|\.json$|\/offline\.ts$|^adapters\/.*\/client\.ts$/.test(path),
      ),
    ).toEqual([])
  })
})
