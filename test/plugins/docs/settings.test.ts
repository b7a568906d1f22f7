import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ChannelAdapter } from '../../../adapters/channels/contract.ts'
import { readDefinitions } from '../../../core/cli/plugin-definitions.ts'
import { loadConfig } from '../../../core/config/load.ts'
import { parseToml } from '../../../core/config/toml-text.ts'
import type { AnyPlugin } from '../../../core/host/define.ts'
import { parseSections, sectionWarnings } from '../../../core/host/section.ts'
import { parseManifest } from '../../../plugins/agents/manifest.ts'
import { readFileAccounts } from '../../../plugins/channels/accounts/file-accounts.ts'
import { ignoredKeys, readDefinition } from '../../../plugins/hands/definition.ts'
import { Template } from '../../../plugins/integrations/catalog/template.ts'
import { parseManifest as parseSkill } from '../../../plugins/skills/manifest/read.ts'
import { documentBlocks } from '../../support/documents.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

type Kind = 'configuration' | 'manifest' | 'hand' | 'workflow' | 'integration' | 'skill'

/** What is wrong with the text, as its reader says it; nothing when it is right. */
type Check = (text: string) => Promise<readonly string[]> | readonly string[]

/** Blocks of two texts, each after a comment that says of what it is. */
const blocks = documentBlocks('toml').flatMap(({ at, text }) =>
  text.split(/\n\n(?=# (?:of|in) )/).map((part) => ({ at, text: part, kind: kindOf(part) })),
)

let home: string
let host: TestHost
let definitions: readonly AnyPlugin[]
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-settings-'))
  definitions = await readDefinitions(home, [])
  host = await startHost({ memory: true })
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "writer"' })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

const checks: Readonly<Record<Kind, Check>> = {
  configuration: async (text) => {
    await writeFile(join(home, 'config.toml'), text)
    const loaded = (await loadConfig({ home, cwd: home, env: {}, flags: {} })).complete(definitions)
    for (const definition of definitions) parseSections(definition, loaded.config, loaded.sources)
    const statuses = definitions.map(({ name }) => ({ name, state: 'loaded' as const }))
    return [
      ...loaded.warnings,
      ...sectionWarnings(loaded.config, statuses, definitions, loaded.sources),
      ...(await checkChannels(parseToml(text)['channels'])),
    ]
  },
  // A fragment is of any agent.
  manifest: (text) => parseManifest(/^name = /m.test(text) ? text : `name = "any"\n${text}`).warnings,
  hand: (text) => {
    const whole = /^id = /m.test(text)
      ? text
      : `id = "paper"\nname = "Paper"\ndescription = "Writes"\ncategory = "content"\ntools = []\n${text}`
    readDefinition(whole)
    return ignoredKeys(whole).map(({ path }) => `unknown key ${path}`)
  },
  workflow: async (text) => {
    const { status, body } = await host.json('POST', '/api/workflows', parseToml(text))
    return status === 201 ? [] : [JSON.stringify(body)]
  },
  integration: (text) => issuesOf(Template, parseToml(text)),
  skill: async (text) => {
    await parseSkill(undefined, text)
    return []
  },
}

describe('the TOML of the documents', () => {
  it('has blocks of every kind', () => {
    expect(blocks.length).toBeGreaterThan(70)
    expect(new Set(blocks.map(({ kind }) => kind))).toEqual(new Set(Object.keys(checks)))
  })

  it.each(Object.entries(checks))('has no unknown key and no wrong value in a %s', async (kind, check) => {
    const wrong: string[] = []
    for (const block of blocks.filter((one) => one.kind === kind)) {
      const found = await Promise.resolve(block.text)
        .then(check)
        .catch((error: unknown) => [String(error)])
      wrong.push(...found.map((problem) => `${block.at}: ${problem}`))
    }
    expect(wrong).toEqual([])
  })
})

function kindOf(text: string): Kind {
  const table = parseToml(text)
  const has = (...keys: readonly string[]): boolean => keys.some((key) => Object.hasOwn(table, key))
  if (has('steps')) return 'workflow'
  if (has('transport')) return 'integration'
  if (has('skill')) return 'skill'
  if (has('id', 'agents')) return 'hand'
  if (has('name', 'capabilities', 'schedule', 'resources', 'proactive_memory')) return 'manifest'
  return 'configuration'
}

/** Each account by the schema of its adapter. Secrets are in the vault, so required fields may be missing. */
async function checkChannels(section: unknown): Promise<readonly string[]> {
  const accounts = readFileAccounts(v.parse(v.optional(v.record(v.string(), v.unknown()), {}), section))
  const found = await Promise.all(
    accounts.map(async ({ channel, config, problem }) => {
      // A plugin of the guide brings it.
      if (channel === 'parley') return []
      const folder = channel.replaceAll('_', '-')
      const adapter = (await import(`../../../adapters/channels/${folder}/adapter.ts`)) as { default: ChannelAdapter }
      const { entries } = adapter.default.config as unknown as v.ObjectSchema<v.ObjectEntries, undefined>
      const wrong = Object.entries(config).flatMap(([key, value]) => {
        const entry = entries[key]
        return entry ? issuesOf(entry, value) : [`${channel} has no key ${key}`]
      })
      return problem === undefined ? wrong : [problem, ...wrong]
    }),
  )
  return found.flat()
}

function issuesOf(schema: v.GenericSchema, value: unknown): readonly string[] {
  const result = v.safeParse(schema, value)
  return result.success ? [] : result.issues.map((issue) => `${v.getDotPath(issue) ?? ''}: ${issue.message}`)
}
