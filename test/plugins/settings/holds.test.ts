import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { renderToml } from '../../../core/config/toml-text.ts'
import { nest, overlay } from '../../../core/config/layer.ts'
import { coreKeys } from '../../../core/config/schema.ts'
import { isTree } from '../../../core/config/shape.ts'
import type { Tree } from '../../../core/config/shape.ts'
import { keysOf } from '../../support/config-keys.ts'
import type { ConfigKey } from '../../support/config-keys.ts'
import { startHost } from '../../support/host.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-holds-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))
const write = (text: string): Promise<void> => writeFile(join(home, 'config.toml'), text)

/** Values of keys whose schema in JSON does not say enough to make one up. */
const particular: Readonly<Record<string, unknown>> = {
  'plugins.clock.timezone': 'Asia/Tokyo',
  'manifest_signing.trusted_signers': ['ab'.repeat(32)],
  'external_auth.redirect_url': 'https://svc.example/api/auth/callback',
  'providers.any.driver': 'openai-compatible',
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

describe('what the configuration says holds', () => {
  it('each key of a plugin reaches it with a reload, unless it is marked `restart`', async () => {
    await write('')
    await using host = await startHost({ home, config: {} })
    const { body: schema } = await host.json('GET', '/api/config/schema')
    const wanted = keysOf(schema)
      .filter(({ node }) => node['restart'] !== true)
      .map(({ key, node }) =>
        /providers\.any\.prices\.any\./.test(key)
          ? { path: key.split('.').slice(0, -1), value: { input: 1, output: 2, cached_input: 3, cache_write: 4 } }
          : { path: key.split('.'), value: another({ key, node }) },
      )
      .filter(({ path: [first = '', second = ''], value }) => {
        const ofPlugin =
          (first === 'plugins' && isTree(at(schema, ['properties', 'plugins', 'properties', second, 'properties']))) ||
          !coreKeys.includes(first)
        return ofPlugin && value !== undefined
      })
    expect(wanted.length).toBeGreaterThan(150)
    await write(renderToml(wanted.reduce<Tree>((tree, { path, value }) => overlay(tree, nest(path, value)), {})))
    const { status, body } = await host.json('POST', '/api/config/reload')
    expect([status, body]).toMatchObject([200, { failed: [], warnings: [] }])
    // Those the request itself runs in take theirs when it is answered.
    for (const plugin of body.pending) await host.plugin(plugin, 'loaded', ({ reloads }) => reloads > 0)
    const owners = new Map(
      host.app.host
        .definitions()
        .flatMap(({ name, sections = {} }) =>
          Object.keys(sections as object).map((section) => [section, name] as const),
        ),
    )
    const seen = wanted.map(({ path, value }) => {
      const [first = '', second = '', ...rest] = path
      const config =
        first === 'plugins'
          ? at(host.app.host.configOf(second), rest)
          : at(host.app.host.configOf(owners.get(first) ?? ''), path)
      return { key: path.join('.'), value: config, expected: value }
    })
    expect(seen.filter(({ value, expected }) => JSON.stringify(value) !== JSON.stringify(expected))).toEqual([])
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

  it('a section has one owner', async () => {
    const folder = join(home, 'second')
    const { mkdir } = await import('node:fs/promises')
    await mkdir(folder)
    await writeFile(
      join(folder, 'index.ts'),
      "import * as v from 'valibot'\nimport { definePlugin } from 'svc/sdk'\nexport default definePlugin({ name: 'second', version: '1.0.0', sections: { manifest_signing: v.optional(v.object({}), {}) }, config: v.object({}), setup: () => ({}) })\n",
    )
    await using host = await startHost({ home, config: {}, plugins: ['audit', 'settings', 'agents', folder] })
    expect(host.app.daemon.plugins().find(({ name }) => name === 'second')).toMatchObject({
      state: 'failed',
      error: 'section [manifest_signing] of the configuration belongs to plugin "agents"',
    })
  })
})
