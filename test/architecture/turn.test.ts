import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { RunFile } from '../support/turn-coverage.ts'
import { root } from './sources.ts'

/** What runs in a turn and is not the turn itself. */
const surroundings: readonly { readonly path: RegExp; readonly because: string }[] = [
  {
    path: /^core\//,
    because: 'every request runs through it: routing, authentication, limits, storage, hooks, log, outgoing requests',
  },
  { path: /^plugins\/audit\//, because: 'every change has its audit entry, whoever makes it' },
  {
    path: /^plugins\/(?:activity|approvals|webhooks)\//,
    because: 'they hear that a turn ended or that something was committed, and do nothing for the turn',
  },
  {
    path: /^plugins\/(?:skills\/|agents\/tool-rights)/,
    because: 'it looks whether a skill was edited, and adds what it made of them before to the system prompt',
  },
  {
    path: /^plugins\/[^/]+\/(?:index|composition)\.ts$/,
    because: 'wiring: a function that names a service, made when the plugin loaded',
  },
]
/** The call of a model, behind `Inference`: a reader of a turn need not go in. */
const modelCall = /^(?:plugins\/(?:providers|catalog)|adapters)\//

/** How many files a plain turn may run through. These numbers only fall. */
const MAX_TURN_FILES = 32
const MAX_MODEL_CALL_FILES = 24
/** Calls of functions in these files; how many there are depends a little on how the answer is cut into chunks. */
const MAX_CALLS = 700

/** The paths in the first column of a table below a heading. */
function documented(heading: string): readonly string[] {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const start = page.indexOf(`\n### ${heading}\n`)
  const section = page.slice(start + 1).split(/\n#{2,3} /)[0] ?? ''
  return start < 0 ? [] : [...section.matchAll(/^\| `([^`]+)` \|/gm)].map(([, path = '']) => path)
}

// The code cache of a compiled module would make counts less precise.
const { NODE_COMPILE_CACHE: _, ...env } = process.env
const output = execFileSync(
  process.execPath,
  ['--conditions=svc-source', join(root, 'test/support/turn-coverage.ts')],
  { encoding: 'utf8', env },
)
const files = JSON.parse(output) as readonly RunFile[]
const own = files.filter(({ path }) => !surroundings.some((each) => each.path.test(path)))
const paths = own.map(({ path }) => path)
const turn = paths.filter((path) => !modelCall.test(path))
const call = paths.filter((path) => modelCall.test(path))

describe('one plain turn', () => {
  it('runs through few files of its own', () => {
    expect(turn.length).toBeLessThanOrEqual(MAX_TURN_FILES)
  })

  it('calls a model through few files', () => {
    expect(call.length).toBeLessThanOrEqual(MAX_MODEL_CALL_FILES)
  })

  it('calls few functions', () => {
    expect(own.reduce((sum, { calls }) => sum + calls, 0)).toBeLessThanOrEqual(MAX_CALLS)
  })

  it('runs through the files that docs/architecture.md lists', () => {
    expect(documented('The turn').toSorted()).toEqual(turn.toSorted())
    expect(documented('The call of the model').toSorted()).toEqual(call.toSorted())
  })

  it('every group that does not count runs', () => {
    const idle = surroundings.filter(({ path }) => !files.some((file) => path.test(file.path)))
    expect(idle).toEqual([])
  })
})
