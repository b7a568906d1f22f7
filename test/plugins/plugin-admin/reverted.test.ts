import { join } from 'node:path'
import type { PluginChange } from 'svc/internal'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { ManualTimer } from '../../../core/jobs/manual-timer.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { pluginText, routeText, writePlugin } from '../../support/plugin-folder.ts'
import { turnPlugins } from '../plugin-test.ts'

// A plugin whose calls fail after a reload goes back to the code before, whatever it registered them as.

const FAILURES = 3
let host: TestHost
let changed: (change: PluginChange) => void = () => undefined
const timers = new Map<string, ManualTimer>()

/** A plugin with everything that others call; what `broken` names throws. */
const source = (broken: string): string => {
  const fail = (kind: string): string => (kind === broken ? `throw new Error('broken ${kind}')` : '')
  return pluginText('unstable', {
    before: `import { Channels } from 'svc/channels'
      const Ping = notify('unstable:ping')
      const background = () => ({
        closed: new Promise(() => undefined), send: async () => ({ id: '1' }),
        webhook: async () => { ${fail('webhook')}; return { status: 200 } },
        [Symbol.asyncDispose]: async () => undefined,
      })
      const adapter = {
        config: v.object({}), capabilities: { dialect: 'plain', maxLength: 100, lengthUnit: 'characters',
          idempotentSend: true, rate: { overall: { perSecond: 100, burst: 100 } } },
        open: async () => { ${fail('channel')}; return background() },
        probe: async () => ({ account: 'me' }),
      }`,
    members: `requires: { channels: Channels }, hooks: [Ping], reload: 'exclusive',`,
    setup: `${routeText('/api/unstable', 'route', fail('route'))}
      ${routeText('/api/unstable/ping', 'ping', 'await ctx.hooks.emit(Ping, {})')}
      ctx.hooks.on(Ping, async () => { ${fail('hook')} })
      ctx.hooks.on(notify('daemon:plugin-changed'), (change) => (globalThis as any).onUnstable(change))
      ctx.tools.add(defineTool({ name: 'unstable', description: 'A tool', risk: 'read', input: v.object({}),
        run: async () => { ${fail('tool')}; return 'tool' } }))
      ctx.jobs.every('tick', 1000, async () => { ${fail('job')} })
      ctx.own('channel unstable', ctx.services.channels.add({ name: 'unstable', title: 'Unstable',
        category: 'developer', description: 'A chat', load: async () => ({ default: adapter }) }, ctx))
      return {}`,
  })
}
const folder = (): string => join(host.home, 'unstable')

beforeAll(async () => {
  Object.assign(globalThis, { onUnstable: (change: PluginChange) => changed(change) })
  host = await startHost({
    plugins: [...turnPlugins, 'settings', 'channels', 'plugin-admin'],
    memory: true,
    jobTimer(plugin) {
      const timer = timers.get(plugin) ?? new ManualTimer(0)
      timers.set(plugin, timer)
      return timer
    },
    config: {
      channels: { unstable: { agent_name: 'nobody' } },
      plugins: {
        watch: false,
        revert_failures: FAILURES,
        revert_percent: 20,
        channels: { reconnect_min_ms: 100, reconnect_max_ms: 1000 },
      },
    },
  })
  await host.app.host.load(await writePlugin(folder(), source('nothing')))
})
afterAll(() => host[Symbol.asyncDispose]())

const toolCall = { agentId: 'a', agentName: 'a', sessionId: 's', turnId: 't', callId: 'c' }
const request = async (method: string, path: string): Promise<void> => void (await host.fetch(path, { method }))
const calls: Readonly<Record<string, () => Promise<void>>> = {
  route: () => request('GET', '/api/unstable'),
  hook: () => request('GET', '/api/unstable/ping'),
  tool: async () =>
    void (await host.app.callTool('unstable', {}, { ...toolCall, signal: new AbortController().signal })),
  job: async () => timers.get('unstable')?.advance(1000),
  webhook: () => request('POST', '/api/channels/unstable/webhook'),
  // It connects anew by itself.
  channel: () => request('POST', '/api/channels/reload'),
}

it.each(Object.entries(calls))('a failing %s: status, log, hook and audit entry say so', async (kind, call) => {
  await writePlugin(folder(), source(kind))
  await host.app.host.reload('unstable')
  const reverted = new Promise<PluginChange>((resolve) => {
    changed = (change) => {
      if (change.change === 'reverted') resolve(change)
    }
  })
  for (let time = 0; time < FAILURES; time++) await call()
  const reason = new RegExp(String.raw`\d+ of \d+ calls failed, the last one with: broken ${kind}$`, 'm')
  expect(await reverted).toMatchObject({ plugin: 'unstable', reason: expect.stringMatching(reason) as string })
  const { stdout } = await runHere(['plugin', 'list', '--url', host.url])
  expect(stdout).toMatch(/^unstable: went back to the code before: /m)
  expect(stdout).toMatch(reason)
  expect(host.log.join('\n')).toContain(`broken ${kind}`)
  const audited = async (): Promise<string> =>
    (await host.json('GET', '/api/audit/recent?event_type=plugin_changed')).body.entries.at(-1).details
  await expect.poll(audited).toMatch(new RegExp(`^plugin "unstable" 1\\.0\\.0 .*: reverted: ${reason.source}`))
  host.defects()
})
