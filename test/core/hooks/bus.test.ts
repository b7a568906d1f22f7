import { describe, expect, it } from 'vitest'
import { Refusal } from '../../../core/errors/error.ts'
import { HookBus } from '../../../core/hooks/bus.ts'
import { gate, notify, transform } from '../../../core/hooks/hook.ts'
import { Scope } from '../../../core/scope/scope.ts'

interface Defect {
  readonly error: unknown
  readonly where: string
}
function bus() {
  const defects: Defect[] = []
  return {
    defects,
    bus: new HookBus((error, where) => {
      defects.push({ error, where })
    }),
  }
}

describe('a notification', () => {
  const Spawned = notify<{ id: string }>('agents:spawned')

  it('reaches every listener although one fails, and names the plugin that failed', async () => {
    const { bus: hooks, defects } = bus()
    const heard: string[] = []
    hooks.forPlugin(new Scope('first')).on(Spawned, () => {
      throw new Error('broken')
    })
    hooks.forPlugin(new Scope('second')).on(Spawned, async () => {
      throw new Error('broken later')
    })
    hooks.forPlugin(new Scope('third')).on(Spawned, ({ id }) => {
      heard.push(id)
    })
    await hooks.forPlugin(new Scope('emitter')).emit(Spawned, { id: 'a' })
    expect(heard).toEqual(['a'])
    expect(defects.map(({ where }) => where)).toEqual([
      'plugin "first", listener of agents:spawned',
      'plugin "second", listener of agents:spawned',
    ])
  })

  it('settles when every listener has ended', async () => {
    const { bus: hooks } = bus()
    const { promise, resolve } = Promise.withResolvers<void>()
    let ended = false
    hooks.forPlugin(new Scope('slow')).on(Spawned, async () => {
      await promise
      ended = true
    })
    const emitted = hooks.forPlugin(new Scope('emitter')).emit(Spawned, { id: 'a' })
    resolve()
    await emitted
    expect(ended).toBe(true)
  })

  it('is found by id by a plugin that holds another copy of the hook', async () => {
    const { bus: hooks } = bus()
    const heard: string[] = []
    hooks.forPlugin(new Scope('listener')).on(notify<{ id: string }>('agents:spawned'), ({ id }) => {
      heard.push(id)
    })
    await hooks.forPlugin(new Scope('emitter')).emit(notify<{ id: string }>('agents:spawned'), { id: 'b' })
    expect(heard).toEqual(['b'])
  })

  it('counts as running work of the plugin that listens', async () => {
    const { bus: hooks } = bus()
    const scope = new Scope('slow')
    const { promise, resolve } = Promise.withResolvers<void>()
    hooks.forPlugin(scope).on(Spawned, () => promise)
    const emitted = hooks.forPlugin(new Scope('emitter')).emit(Spawned, { id: 'a' })
    expect(scope.running).toBe(1)
    resolve()
    await emitted
    expect(scope.running).toBe(0)
  })
})

describe('a gate', () => {
  const Starting = gate<{ cost: number }>('chat:turn-starting')

  it('passes when nobody listens', async () => {
    await expect(bus().bus.forPlugin(new Scope('chat')).check(Starting, { cost: 1 })).resolves.toBeUndefined()
  })

  it('hands the first veto to the caller and asks nobody after it', async () => {
    const { bus: hooks } = bus()
    const asked: string[] = []
    hooks.forPlugin(new Scope('one')).on(Starting, () => {
      asked.push('one')
    })
    hooks.forPlugin(new Scope('two')).on(Starting, () => {
      asked.push('two')
      throw new Refusal('forbidden', 'over budget')
    })
    hooks.forPlugin(new Scope('three')).on(Starting, () => {
      asked.push('three')
    })
    await expect(hooks.forPlugin(new Scope('chat')).check(Starting, { cost: 1 })).rejects.toThrow('over budget')
    expect(asked).toEqual(['one', 'two'])
  })

  it('asks in the order in which plugins were first loaded, also after one was reloaded', async () => {
    const { bus: hooks } = bus()
    const asked: string[] = []
    const first = new Scope('one')
    hooks.forPlugin(first).on(Starting, () => {
      asked.push('one')
    })
    hooks.forPlugin(new Scope('two')).on(Starting, () => {
      asked.push('two')
    })
    await first.close(0)
    hooks.forPlugin(new Scope('one')).on(Starting, () => {
      asked.push('one again')
    })
    await hooks.forPlugin(new Scope('chat')).check(Starting, { cost: 1 })
    expect(asked).toEqual(['one again', 'two'])
  })

  it('waits while the plugin behind it is replaced instead of standing open', async () => {
    const { bus: hooks } = bus()
    const budgets = new Scope('budgets')
    hooks.forPlugin(budgets).on(Starting, () => {
      throw new Refusal('forbidden', 'over budget')
    })
    const release = hooks.hold(['budgets'])
    await budgets.close(0)
    const checked = hooks.forPlugin(new Scope('chat')).check(Starting, { cost: 1 })
    hooks.forPlugin(new Scope('budgets')).on(Starting, () => {
      throw new Refusal('forbidden', 'still over budget')
    })
    release()
    await expect(checked).rejects.toThrow('still over budget')
  })

  it('does not wait when the plugin that is being replaced asks: the replacement waits for it', async () => {
    const { bus: hooks } = bus()
    const budgets = new Scope('budgets')
    hooks.forPlugin(budgets).on(Starting, () => undefined)
    const release = hooks.hold(['budgets'])
    await hooks.forPlugin(budgets).check(Starting, { cost: 1 })
    await budgets.run(() => hooks.forPlugin(new Scope('chat')).check(Starting, { cost: 1 }))
    release()
  })
})

describe('a transform', () => {
  const Built = transform<string>('chat:prompt-built')

  it('hands the value from one listener to the next', async () => {
    const { bus: hooks } = bus()
    hooks.forPlugin(new Scope('one')).on(Built, (text) => `${text}b`)
    hooks.forPlugin(new Scope('two')).on(Built, async (text) => `${text}c`)
    expect(await hooks.forPlugin(new Scope('chat')).apply(Built, 'a')).toBe('abc')
  })

  it('is the value itself when nobody listens', async () => {
    const value = { a: 1 }
    expect(await bus().bus.forPlugin(new Scope('chat')).apply(transform<typeof value>('x:built'), value)).toBe(value)
  })

  it('fails with the listener that fails', async () => {
    const { bus: hooks } = bus()
    hooks.forPlugin(new Scope('one')).on(Built, () => {
      throw new Error('no')
    })
    await expect(hooks.forPlugin(new Scope('chat')).apply(Built, 'a')).rejects.toThrow('no')
  })
})

describe('listeners', () => {
  it('are gone when their plugin is', async () => {
    const { bus: hooks } = bus()
    const scope = new Scope('one')
    const heard: string[] = []
    hooks.forPlugin(scope).on(notify<string>('x:happened'), (text) => {
      heard.push(text)
    })
    await scope.close(0)
    await hooks.forPlugin(new Scope('emitter')).emit(notify<string>('x:happened'), 'a')
    expect(heard).toEqual([])
    expect([...hooks.counts()]).toEqual([])
  })

  it('are refused when another plugin takes the hook for another kind', () => {
    const { bus: hooks } = bus()
    hooks.forPlugin(new Scope('one')).on(notify<string>('x:y'), () => undefined)
    expect(() => hooks.forPlugin(new Scope('two')).on(gate<string>('x:y'), () => undefined)).toThrow(
      'hook "x:y" is a notify for plugin "one" and a gate for "two"',
    )
  })
})
