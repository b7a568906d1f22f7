import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { httpSettings } from '../../../core/app/settings.ts'
import { createApp } from '../../../core/app.ts'
import { loadConfig } from '../../../core/config/load.ts'
import { createLog } from '../../../core/log/log.ts'
import { pluginText, writePlugin } from '../../support/plugin-folder.ts'
import { renderToml } from '../../../core/config/toml-text.ts'
import { nest, overlay } from '../../../core/config/layer.ts'
import { isLive } from '../../../core/config/live.ts'
import { wholeSchema } from '../../../core/config/schema.ts'
import { nestingLimit } from '../../../core/schema/nesting.ts'
import { isTree } from '../../../core/config/shape.ts'
import type { Tree } from '../../../core/config/shape.ts'
import { keysOf } from '../../support/config-keys.ts'
import type { ConfigKey } from '../../support/config-keys.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-holds-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))
const write = (text: string): Promise<void> => writeFile(join(home, 'config.toml'), text)

/** Values of keys whose schema in JSON does not say enough to make one up. */
const particular: Readonly<Record<string, unknown>> = {
  'http.allowed_hosts': ['other.example'],
  'http.allowed_origins': ['https://other.example'],
  'http.trusted_proxies': ['10.0.0.0/8'],
  'outbound.allow': ['10.0.0.0/8'],
  'plugins.clock.timezone': 'Asia/Tokyo',
  'manifest_signing.trusted_signers': ['ab'.repeat(32)],
  'external_auth.redirect_url': 'https://svc.example/api/auth/callback',
  'providers.any.driver': 'openai-compatible',
  'plugins.files.s3.bucket': 'other-bucket',
  'plugins.files.s3.region': 'eu-central-1',
  'plugins.files.s3.endpoint': 'http://127.0.0.1:1',
  'plugins.files.s3.prefix': 'other/',
  'plugins.plugin-admin.sources': ['folder'],
  'plugins.hands.sources': ['folder'],
  'plugins.skills.sources': ['folder'],
  // One that there is.
  'plugins.skills.disabled': ['docker'],
  'plugins.browser.chromium_path': '/opt/chromium',
  'plugins.plugin-admin.trusted_keys': ['ab'.repeat(32)],
  'channels.any': { enabled: false },
  'network.peers': ['127.0.0.1:4200'],
}
/** Another value than the one that holds. */
function another({ key, node }: ConfigKey): unknown {
  if (Object.hasOwn(particular, key)) return particular[key]
  const { type, default: old, minimum, maximum, enum: choices } = node
  if (Array.isArray(choices)) return choices.find((one) => one !== old)
  switch (type) {
    case 'boolean':
      return old !== true
    case 'integer':
    case 'number': {
      const least = typeof minimum === 'number' ? minimum : 1
      const start = typeof old === 'number' ? old : least
      const step = type === 'integer' ? 1 : 0.1
      return start + step <= (typeof maximum === 'number' ? maximum : Infinity) ? start + step : start - step
    }
    case 'array':
      return isTree(node['items']) && node['items']['type'] === 'string' ? ['/of-the-test'] : undefined
    default:
      return /url|uri/.test(key) || node['format'] === 'uri' ? 'https://other.example/x' : 'of_the_test'
  }
}
const at = (tree: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((inner, key) => (isTree(inner) ? inner[key] : undefined), tree)

/**
 * What the part of the core that a key is for reads, once the new value holds. A key that is not here belongs to a
 * plugin.
 */
const coreOwners: Readonly<Record<string, (host: TestHost) => unknown>> = {
  api_key: ({ app }) => app.settings().http.apiKey,
  log_level: ({ announced }) => announced.log_level,
  log_format: ({ announced }) => announced.log_format,
  'rate_limit.tokens_per_minute': ({ app }) => app.settings().http.tokensPerMinute,
  'rate_limit.failed_auth_per_minute': ({ app }) => app.settings().http.failedAuthPerMinute,
  // Of two daemons each has half.
  'rate_limit.shared': ({ announced }) =>
    httpSettings(announced, 2).tokensPerMinute < announced.rate_limit.tokens_per_minute,
  'http.max_body_bytes': ({ app }) => app.settings().http.maxBodyBytes,
  'http.max_json_depth': () => nestingLimit(),
  'http.sse_keep_alive_ms': ({ app }) => app.settings().http.sseKeepAliveMs,
  'http.stream_status_ms': ({ app }) => app.settings().http.streamStatusMs,
  'http.socket_buffer_bytes': ({ app }) => app.settings().http.socketBufferBytes,
  'http.socket_frame_bytes': ({ app }) => app.settings().http.socketFrameBytes,
  'http.socket_idle_ms': ({ app }) => app.settings().http.socketIdleMs,
  'http.sockets_per_address': ({ app }) => app.settings().http.socketsPerAddress,
  'http.allowed_hosts': ({ app }) => app.settings().http.allowedHosts,
  'http.allowed_origins': ({ app }) => app.settings().http.allowedOrigins,
  'http.trusted_proxies': ({ app }) => app.settings().http.trustedProxies,
  'outbound.allow': ({ app }) => app.settings().outbound.allow,
  'outbound.connect_timeout_ms': ({ app }) => app.settings().outbound.connectTimeoutMs,
  'outbound.total_timeout_ms': ({ app }) => app.settings().outbound.totalTimeoutMs,
  'outbound.headers_timeout_ms': ({ app }) => app.settings().outbound.headersTimeoutMs,
  'outbound.idle_timeout_ms': ({ app }) => app.settings().outbound.idleTimeoutMs,
  'outbound.max_bytes': ({ app }) => app.settings().outbound.maxBytes,
  'outbound.max_redirects': ({ app }) => app.settings().outbound.maxRedirects,
  'outbound.plugin_connections': ({ app }) => app.settings().outbound.maxPluginConnections,
  'outbound.program_connections': ({ app }) => app.settings().programs.maxConnections,
  'outbound.total_program_connections': ({ app }) => app.settings().programs.maxTotalConnections,
  'plugins.drain_ms': ({ app }) => app.settings().drainMs,
  'plugins.max_crashes': ({ app }) => app.settings().crashes.max,
  'plugins.crash_window_secs': ({ app }) => app.settings().crashes.windowMs / 1000,
  'plugins.worker_memory_mb': ({ app }) => app.settings().isolation.memoryMb,
  'plugins.worker_hang_ms': ({ app }) => app.settings().isolation.hangMs,
  'plugins.worker_message_bytes': ({ app }) => app.settings().isolation.maxMessageBytes,
  'plugins.worker_hook_ms': ({ app }) => app.settings().isolation.hookMs,
  'plugins.worker_restart_ms': ({ app }) => app.settings().isolation.maxRestartMs,
  'plugins.retire_ms': ({ app }) => app.settings().retirement.retireMs,
  'plugins.retired_copies': ({ app }) => app.settings().retirement.maxCopies,
  'plugins.watch_ms': ({ app }) => app.settings().watch.watchMs,
  'plugins.revert_failures': ({ app }) => app.settings().watch.minFailures,
  'plugins.revert_percent': ({ app }) => app.settings().watch.minPercent,
  'tools.timeout_secs': ({ app }) => app.settings().tools.timeoutSecs,
  'tools.output_chars': ({ app }) => app.settings().tools.outputChars,
  'tools.content_chars': ({ app }) => app.settings().tools.contentChars,
}
/** What the owner of a key has for it: the core's part, or the plugin as it runs. */
function ownerValue(host: TestHost, path: readonly string[]): unknown {
  const core = coreOwners[path.join('.')]
  if (core) return core(host)
  const [first = '', second = '', ...rest] = path
  const { host: plugins } = host.app
  if (first === 'plugins') return at(plugins.configOf(second), rest)
  return isLive(path, wholeSchema(plugins.definitions()))
    ? at(host.announced, path)
    : at(plugins.configOf(plugins.ownerOf(first) ?? ''), path)
}

describe('what the configuration says holds', () => {
  it('each key reaches its owner with a reload, unless it is marked `restart`', async () => {
    await write('')
    await using host = await startHost({ home, config: {} })
    const { body: schema } = await host.json('GET', '/api/config/schema')
    const changes = keysOf(schema)
      .filter(({ node }) => node['restart'] !== true)
      .map(({ key, node }) =>
        /providers\.any\.prices\.any\./.test(key)
          ? { path: key.split('.').slice(0, -1), value: { input: 1, output: 2, cached_input: 3, cache_write: 4 } }
          : { path: key.split('.'), value: another({ key, node }) },
      )
      .filter(({ value }) => value !== undefined)
    expect(changes.length).toBeGreaterThan(200)
    await write(renderToml(changes.reduce<Tree>((tree, { path, value }) => overlay(tree, nest(path, value)), {})))
    const { status, body } = await host.json('POST', '/api/config/reload')
    expect([status, body]).toMatchObject([200, { failed: [], warnings: [] }])
    // Those the request itself runs in take theirs when it is answered.
    for (const plugin of body.pending) await host.plugin(plugin, 'loaded', ({ reloads }) => reloads > 0)
    // None waits for the request, which waits for those behind it, until one of them is forced.
    expect(host.log.filter((line) => line.includes('did not unload cleanly'))).toEqual([])
    const wrong = changes
      .map(({ path, value }) => ({ key: path.join('.'), value: ownerValue(host, path), expected: value }))
      .filter(({ value, expected }) => JSON.stringify(value) !== JSON.stringify(expected))
    expect(wrong).toEqual([])
    host.defects()
  })

  it('a section at the top of the file reaches the plugin that owns it', async () => {
    await write('')
    await using host = await startHost({ home, config: {}, plugins: ['audit', 'settings', 'agents'] })
    const spawn = (name: string) => host.json('POST', '/api/agents', { manifest_toml: `name = "${name}"` })
    expect((await spawn('before')).status).toBe(201)
    await write('[manifest_signing]\npolicy = "require"\n')
    const { body } = await host.json('POST', '/api/config/reload')
    expect(body).toMatchObject({ changed: ['manifest_signing.policy'], hot_actions_applied: ['agents'] })
    const refused = await spawn('after')
    expect([refused.status, refused.body.error.message]).toEqual([403, expect.stringContaining('manifest_signing')])
  })

  it.each([
    ['plugins.agents.manifest_signing.policy', 'require', 'manifest_signing.policy'],
    ['plugins.providers.providers.openai.base_url', 'https://other.example', 'providers.openai.base_url'],
    ['plugins.providers.fallback_models', [], 'fallback_models'],
    ['plugins.sso.enabled', true, 'external_auth.enabled'],
    ['plugins.sso.section.enabled', true, 'external_auth.enabled'],
    ['plugins.pairing.enabled', true, 'pairing.enabled'],
    ['plugins.pairing.pairing.enabled', true, 'pairing.enabled'],
    ['plugins.webhooks.triggers.enabled', true, 'webhook_triggers.enabled'],
    ['plugins.budgets.max_daily_usd', 5, 'budget.max_daily_usd'],
    ['plugins.sessions.context_mesages', 5, 'plugins.sessions.context_messages'],
  ])('%s has no effect: it is refused, and warned of in the file, with the right one', async (key, value, right) => {
    await write('')
    await using host = await startHost({ home, config: {} })
    const schema = (await host.json('GET', '/api/config/schema')).body
    expect(keysOf(schema).map((one) => one.key)).not.toContain(key)
    const { status, body } = await host.json('POST', '/api/config/set', { key, value })
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(`did you mean "${right}"?`)])
    await write(renderToml(nest(key.split('.'), value)))
    const { body: reloaded } = await host.json('POST', '/api/config/reload')
    // The whole table where all of it is unknown.
    expect(reloaded.warnings).toHaveLength(1)
    const named = /config\.toml:\d+: unknown key .*; did you mean "(.+)"\?$/.exec(reloaded.warnings[0])?.[1] ?? ''
    expect([right, named]).toEqual([right, right.slice(0, named.length)])
    expect(named).not.toBe('')
    expect((await host.json('GET', '/api/health/detail')).body.config_warnings).toEqual(
      expect.arrayContaining(reloaded.warnings),
    )
  })

  it('a section whose plugin is not loaded is warned of', async () => {
    await write('[pairing]\nenabled = true\n')
    await using host = await startHost({ home, config: {}, plugins: ['audit', 'settings', 'system'] })
    expect((await host.json('GET', '/api/health/detail')).body.config_warnings).toEqual([
      expect.stringMatching(/config\.toml:1: unknown key "pairing" is ignored/),
    ])
  })

  it('a section of a plugin that is disabled stays in the file, whatever it holds', async () => {
    await write('[plugins]\ndisabled = ["pairing"]\n[pairing]\nenabled = "perhaps"\n')
    await using host = await startHost({ home, config: {}, plugins: ['audit', 'settings', 'system', 'pairing'] })
    expect((await host.json('GET', '/api/health/detail')).body.config_warnings).toEqual([
      expect.stringMatching(/config\.toml:3: pairing has no effect, because plugin "pairing" is disabled/),
    ])
    expect((await host.json('GET', '/api/config')).body.config.pairing).toEqual({ enabled: 'perhaps' })
  })

  it('a section that nobody declares is reported with the nearest known one', async () => {
    await write('[paring]\nenabled = true\n')
    await using host = await startHost({ home, config: {}, plugins: ['audit', 'settings', 'system', 'pairing'] })
    expect((await host.json('GET', '/api/health/detail')).body.config_warnings).toEqual([
      expect.stringMatching(/config\.toml:1: unknown key "paring" is ignored; did you mean "pairing"\?/),
    ])
  })

  it('a wrong value in a section of a plugin ends the first start with file, line and key', async () => {
    await write('[budget]\nmax_daily_usd = "much"\n')
    const loaded = await loadConfig({ home, cwd: home, env: {}, flags: {} })
    const log = createLog({ level: 'silent' })
    await expect(createApp({ loaded, log, strict: true })).rejects.toThrow(
      `${join(home, 'config.toml')}:2:1: budget.max_daily_usd: expected a number of at least 0, found the text "much"`,
    )
  })

  it('a secret in a section of a plugin is in no line of the log, whatever its key is called', async () => {
    const folder = join(home, 'pinned')
    const text = pluginText('pinned', {
      before: "import { secret } from 'svc/sdk'",
      members: 'sections: { pinned_at: v.optional(v.object({ where: v.optional(secret(v.string())) }), {}) },',
      setup: "ctx.log.info('it is ' + ctx.config.pin + ' at ' + ctx.config.pinned_at.where); return {}",
    })
    await writePlugin(folder, text.replace('config: v.object({})', 'config: v.object({ pin: secret(v.string()) })'))
    await write('[pinned_at]\nwhere = "canary-two"\n[plugins.pinned]\npin = "canary-one"\n')
    await using host = await startHost({ home, config: {}, plugins: ['audit', 'settings', folder] })
    expect(host.log.join('')).toContain('it is *** at ***')
    await write('[pinned_at]\nwhere = "canary-four"\n[plugins.pinned]\npin = "canary-three"\n')
    const { body } = await host.json('POST', '/api/config/reload')
    expect(body.hot_actions_applied).toEqual(['pinned'])
    expect(host.log.join('')).not.toContain('canary')
  })

  it('a section has one owner', async () => {
    const folder = join(home, 'second')
    const { mkdir } = await import('node:fs/promises')
    await mkdir(folder)
    await writeFile(
      join(folder, 'index.ts'),
      `import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
const sections = { manifest_signing: v.optional(v.object({}), {}) }
export default definePlugin({ name: 'second', version: '1.0.0', sections, config: v.object({}), setup: () => ({}) })
`,
    )
    await using host = await startHost({ home, config: {}, plugins: ['audit', 'settings', 'agents', folder] })
    expect(host.app.daemon.plugins().find(({ name }) => name === 'second')).toMatchObject({
      state: 'failed',
      error: 'section [manifest_signing] of the configuration belongs to plugin "agents"',
    })
  })
})
