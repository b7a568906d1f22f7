import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import type { AnyPlugin } from '../../../core/host/define.ts'
import { mount } from '../../../core/host/instance.ts'
import type { Members, Mounting } from '../../../core/host/instance.ts'
import { createLog } from '../../../core/log/log.ts'
import type { Scope } from '../../../core/scope/scope.ts'

const plugin = (setup: AnyPlugin['setup'], more: Partial<AnyPlugin> = {}): AnyPlugin => ({
  name: 'one',
  version: '1',
  config: v.object({}),
  ...more,
  setup,
})
function bench(): { mounting: Mounting; scopes: Scope[] } {
  const scopes: Scope[] = []
  return {
    scopes,
    mounting: {
      log: createLog({ write: () => undefined }),
      find: (id) => (id === 'there' ? 'the service' : undefined),
      access: 'built-in',
      restrict: async (members) => members,
      setupMs: 20,
      drainMs: 0,
      // Setup uses none of the host's parts here.
      members: (scope) => {
        scopes.push(scope)
        return {} as Members
      },
    },
  }
}

describe('setting a plugin up', () => {
  it('gives it up when it does not end in time, and closes its scope', async () => {
    const { mounting, scopes } = bench()
    await expect(
      mount(
        plugin(() => new Promise(() => undefined)),
        {},
        mounting,
      ),
    ).rejects.toThrow('setup did not end within 20 ms')
    expect(scopes[0]).toMatchObject({ state: 'closed' })
    expect(scopes[0]?.signal.aborted).toBe(true)
  })

  it('fails when it does not return what it provides', async () => {
    const { mounting } = bench()
    await expect(
      mount(
        plugin(() => ({}), { provides: { it: { id: 'one' } } }),
        {},
        mounting,
      ),
    ).rejects.toThrow('setup did not return what the plugin provides: it')
  })

  it('hands over required services, and optional ones when asked', async () => {
    const { mounting } = bench()
    let seen: unknown
    await mount(
      plugin(
        (ctx) => {
          seen = [ctx.services.a, ctx.optional('b'), ctx.optional('c')]
          return {}
        },
        { requires: { a: { id: 'there' } }, optional: { b: { id: 'there' }, c: { id: 'away' } } },
      ),
      {},
      mounting,
    )
    expect(seen).toEqual(['the service', 'the service', undefined])
  })

  it('refuses an optional service that was not declared', async () => {
    const { mounting } = bench()
    await expect(
      mount(
        plugin((ctx) => {
          ctx.optional('b')
          return {}
        }),
        {},
        mounting,
      ),
    ).rejects.toThrow('plugin "one" does not declare the optional service "b"')
  })
})
