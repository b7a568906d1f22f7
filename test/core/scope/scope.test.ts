import { describe, expect, it } from 'vitest'
import { Barrier } from '../../../core/scope/barrier.ts'
import { outsideCalls, runningCalls } from '../../../core/scope/call.ts'
import { Scope } from '../../../core/scope/scope.ts'

describe('a scope', () => {
  it('undoes what it owns newest first', async () => {
    const scope = new Scope('one')
    const seen: string[] = []
    for (const label of ['first', 'second', 'third'])
      scope.own('thing', label, () => {
        seen.push(label)
      })
    expect(scope.ledger()).toEqual([
      { kind: 'thing', label: 'first' },
      { kind: 'thing', label: 'second' },
      { kind: 'thing', label: 'third' },
    ])
    await scope.close(0)
    expect(seen).toEqual(['third', 'second', 'first'])
    expect(scope.ledger()).toEqual([])
  })

  it('undoes everything although one undo fails, and tells at the end', async () => {
    const scope = new Scope('one')
    const seen: string[] = []
    scope.own('thing', 'first', () => {
      seen.push('first')
    })
    scope.own('thing', 'second', () => {
      throw new Error('stuck')
    })
    await expect(scope.close(0)).rejects.toMatchObject({ errors: [{ message: 'stuck' }] })
    expect(seen).toEqual(['first'])
  })

  it('releases one entry early, once', async () => {
    const scope = new Scope('one')
    let undone = 0
    const undo = scope.own('thing', 'first', () => {
      undone++
    })
    await undo()
    await undo()
    await scope.close(0)
    expect(undone).toBe(1)
  })

  it('refuses registrations when it drains, so that a late callback cannot arm itself again', async () => {
    const scope = new Scope('one')
    const leave = scope.enter()
    const closed = scope.close(10_000)
    expect(() => scope.own('timer', 'late', () => undefined)).toThrow('scope "one" is draining: cannot add timer late')
    leave()
    await closed
    expect(() => scope.own('timer', 'late', () => undefined)).toThrow('is closed')
  })

  it('waits for running work before it aborts', async () => {
    const scope = new Scope('one')
    const { promise, resolve } = Promise.withResolvers<void>()
    const work = scope.run(async () => {
      await promise
      return scope.signal.aborted
    })
    const closed = scope.close(10_000)
    resolve()
    expect(await work).toBe(false)
    await closed
    expect(scope.signal.aborted).toBe(true)
  })

  it('aborts work that does not end by itself, and says who ignored it', async () => {
    const scope = new Scope('one')
    const obedient = scope.run(
      () =>
        new Promise<void>((resolve) => {
          scope.signal.addEventListener('abort', () => resolve())
        }),
    )
    scope.run(() => new Promise(() => undefined)).catch(() => undefined)
    await expect(scope.close(5)).rejects.toMatchObject({ errors: [{ message: '1 calls ignored the abort signal' }] })
    await obedient
  })
})

describe('the calls that code runs in', () => {
  it('are known across awaits, innermost first, until they end', async () => {
    const outer = new Scope('outer')
    const inner = new Scope('inner')
    await outer.run(async () => {
      await inner.run(async () => {
        await Promise.resolve()
        expect(runningCalls().map(({ plugin }) => plugin)).toEqual(['inner', 'outer'])
      })
      expect(runningCalls().map(({ plugin }) => plugin)).toEqual(['outer'])
    })
    expect(runningCalls()).toEqual([])
  })

  it('are known after enter as after run', async () => {
    const scope = new Scope('one')
    await (async () => {
      const leave = scope.enter()
      await Promise.resolve()
      const [call] = runningCalls()
      expect(call?.plugin).toBe('one')
      let ended = false
      const waiting = call?.settled().then(() => {
        ended = true
      })
      expect(ended).toBe(false)
      leave()
      await waiting
      expect(ended).toBe(true)
    })()
  })

  it('do not reach into work that belongs to nobody', async () => {
    await new Scope('one').run(() =>
      outsideCalls(async () => {
        await Promise.resolve()
        expect(runningCalls()).toEqual([])
      }),
    )
  })
})

describe('a barrier', () => {
  it('lets users wait until it is released', async () => {
    const barrier = new Barrier()
    const release = barrier.hold(['kv_get'], ['kv'])
    let waited = true
    const waiting = barrier.wait('kv_get', 'chat')?.then(() => {
      waited = false
    })
    expect(barrier.wait('other', 'chat')).toBeUndefined()
    expect(waited).toBe(true)
    release()
    await waiting
    expect(waited).toBe(false)
    expect(barrier.wait('kv_get', 'chat')).toBeUndefined()
  })

  it('never holds work of the plugins behind it', async () => {
    const barrier = new Barrier()
    const release = barrier.hold(['kv_get'], ['kv'])
    expect(barrier.wait('kv_get', 'kv')).toBeUndefined()
    await new Scope('kv').run(() => {
      expect(barrier.wait('kv_get', 'chat')).toBeUndefined()
    })
    release()
  })
})
