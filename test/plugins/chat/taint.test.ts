import { describe, expect, it } from 'vitest'
import { carriedBy, union } from '../../../plugins/chat/safety/labels.ts'
import type { Carried, Label } from '../../../plugins/chat/safety/labels.ts'
import { argumentHash, checkFlow } from '../../../plugins/chat/safety/taint.ts'
import { LABELS } from '../../../plugins/sessions/contract.ts'

/** What each kind of sink refuses (security facts 1.2). */
const sinks = {
  shell: ['ExternalNetwork', 'UntrustedAgent', 'UserInput'],
  network: ['Secret', 'Pii'],
  agent: ['Secret'],
  channel: ['Secret'],
  sharedMemory: ['Secret'],
  settings: ['ExternalNetwork', 'UntrustedAgent'],
} as const satisfies Readonly<Record<string, readonly Label[]>>
const carrying = (...found: readonly Label[]): Carried => new Map(found.map((label) => [label, 'a page']))
const pairs = Object.entries(sinks).flatMap(([sink, refuses]) =>
  LABELS.map((label) => ({ sink, refuses, label, refused: (refuses as readonly Label[]).includes(label) })),
)

describe('every label at every sink', () => {
  it.each(pairs)('$label at $sink: refused $refused', ({ refuses, label, refused }) => {
    expect(checkFlow({ tool: 'some_tool', args: { a: 1 }, refuses, carried: carrying(label) }).allowed).toBe(!refused)
    expect(checkFlow({ tool: 'some_tool', args: { a: 1 }, refuses, carried: carrying() }).allowed).toBe(true)
  })
})

it('what is said of a refusal names label, source and sink, and no value', () => {
  const verdict = checkFlow({
    tool: 'shell_exec',
    args: { command: 'echo hidden-value' },
    refuses: sinks.shell,
    carried: new Map([['ExternalNetwork', 'the answer of web_fetch']]),
  })
  expect(verdict).toMatchObject({
    allowed: false,
    label: 'ExternalNetwork',
    text: expect.stringMatching(/shell_exec refuses ExternalNetwork.*the answer of web_fetch/),
  })
  expect(JSON.stringify(verdict)).not.toContain('hidden-value')
})

it('clean and tainted text together are tainted, and a summary keeps the labels of what it stands for', () => {
  expect([...union(carrying('UserInput'), carrying(), carrying('Secret')).keys()]).toEqual(['UserInput', 'Secret'])
  const carried = carriedBy([
    { blocks: [{ type: 'text', labels: ['UserInput'] }] },
    { blocks: [{ type: 'text' }, { type: 'result', tool: 'web_fetch', labels: ['ExternalNetwork', 'Nonsense'] }] },
  ])
  expect([...carried]).toEqual([
    ['UserInput', 'a message'],
    ['ExternalNetwork', 'the answer of web_fetch'],
  ])
})

describe('a label is let through', () => {
  const flow = {
    tool: 'shell_exec',
    args: { command: 'git status', timeout_seconds: 5 },
    refuses: sinks.shell,
    carried: carrying('UserInput', 'ExternalNetwork'),
  }
  const hash = argumentHash('shell_exec', { timeout_seconds: 5, command: 'git status' })

  it('by an approval of exactly these arguments, and each label leaves a record', () => {
    const verdict = checkFlow({ ...flow, approved: new Map([[hash, 'approval 7']]) })
    expect(verdict).toEqual({
      allowed: true,
      declassified: [
        { label: 'UserInput', sink: 'shell_exec', by: 'approval 7', argumentHash: hash },
        { label: 'ExternalNetwork', sink: 'shell_exec', by: 'approval 7', argumentHash: hash },
      ],
    })
  })
  it('not by an approval of other arguments', () => {
    expect(
      checkFlow({ ...flow, args: { ...flow.args, timeout_seconds: 6 }, approved: new Map([[hash, 'approval 7']]) })
        .allowed,
    ).toBe(false)
    expect(checkFlow({ ...flow, tool: 'process_start', approved: new Map([[hash, 'approval 7']]) }).allowed).toBe(false)
  })
  it('by a command that the operator wrote word for word', () => {
    expect(checkFlow({ ...flow, commands: ['ls', 'git status'] })).toMatchObject({
      allowed: true,
      declassified: [{ by: 'operator' }, { by: 'operator' }],
    })
  })
  it.each([
    ['a pattern', ['git *', '*']],
    ['the beginning', ['git']],
    ['nothing', []],
  ])('not by %s of it', (_what, commands) => {
    expect(checkFlow({ ...flow, commands }).allowed).toBe(false)
  })
  it('not by a command where the arguments come apart from it, nor for another tool', () => {
    expect(
      checkFlow({ ...flow, tool: 'process_start', args: { command: 'git', args: ['status'] }, commands: ['git'] })
        .allowed,
    ).toBe(false)
    expect(checkFlow({ ...flow, tool: 'other_tool', commands: ['git status'] }).allowed).toBe(false)
  })
})
