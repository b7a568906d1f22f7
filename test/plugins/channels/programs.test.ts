import { tmpdir } from 'node:os'
import { describe, expect, it } from 'vitest'
import type { ProgramRequest } from 'svc/channels'
import { createSpawn } from '../../../core/process/spawn.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { classifyError } from '../../../plugins/channels/connections/failure.ts'
import { programStarter } from '../../../plugins/channels/connections/programs.ts'

function stage() {
  const scope = new Scope('test')
  const link = new AbortController()
  const start = programStarter(createSpawn(scope), link.signal)
  let stdout = ''
  const request = (program: string, args: readonly string[], more: Partial<ProgramRequest> = {}): ProgramRequest => ({
    program,
    args,
    folder: tmpdir(),
    onOutput: (bytes, from) => void (from === 'stdout' && (stdout += Buffer.from(bytes).toString())),
    ...more,
  })
  return { scope, link, start, request, output: () => stdout, [Symbol.asyncDispose]: () => scope.close(0) }
}

describe('programs of channels', () => {
  it('get their arguments as they are, and secrets in their standard input', async () => {
    await using test = stage()
    const child = await test.start(
      test.request('sh', ['-c', 'printf "%s|" "$@"; cat', 'x', '$HOME', 'a b'], { input: 's' }),
    )
    expect(await child.ended).toMatchObject({ code: 0 })
    expect(test.output()).toBe('$HOME|a b|s')
  })

  it('end by themselves without reading their input', async () => {
    await using test = stage()
    const child = await test.start(test.request('sh', ['-c', 'exit 3'], { input: 'x'.repeat(1_000_000) }))
    expect(await child.ended).toMatchObject({ code: 3 })
  })

  it('end with the link', async () => {
    await using test = stage()
    const child = await test.start(test.request('sleep', ['1000']))
    test.link.abort(new Error('the link ended'))
    expect((await child.ended).reason).toBe('killed')
    await expect.poll(() => test.scope.ledger()).toEqual([])
  })

  it('are refused for accounts that may have none, and missing ones are told by name', async () => {
    await using test = stage()
    const { signal } = test.link
    await expect(programStarter(undefined, signal)(test.request('sh', []))).rejects.toMatchObject({ code: 'forbidden' })
    const missing = await test.start(test.request('no-such-program', [])).catch((error: unknown) => error)
    expect(classifyError(missing, false)).toMatchObject({
      final: 'missing_dependency',
      reason: expect.stringContaining('"no-such-program" is not installed'),
    })
  })
})
