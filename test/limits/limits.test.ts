import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { builtInFolders } from '../../core/host/folders.ts'
import { toConfig } from '../support/chat-stage.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import { startHost } from '../support/host.ts'
import { data } from './data.ts'
import { hooks, http, idleSockets, keys, rates, times } from './http.ts'
import { startOutside } from './limit.ts'
import type { LimitGroup, LimitStage } from './limit.ts'
import { elsewhere, notLimits } from './not-limits.ts'
import { pictures, programs, registry, silence, slow, web } from './outside.ts'
import { answers, firstEvents, models, money, pauses, turn, turns } from './turns.ts'

const groups: readonly LimitGroup[] = [
  rates,
  keys,
  http,
  times,
  idleSockets,
  hooks,
  data,
  turns,
  models,
  firstEvents,
  pauses,
  answers,
  turn,
  money,
  web,
  silence,
  slow,
  pictures,
  registry,
  programs,
]

describe.each(groups)('limits of $name', ({ config, limits }) => {
  let stage: LimitStage & AsyncDisposable
  beforeAll(async () => {
    stage = await open(config)
  })
  afterAll(() => stage[Symbol.asyncDispose]())
  it.each(Object.entries(limits))('%s', async (_, reach) => {
    await reach(stage)
  })
})

it('every number of the configuration is a limit that is tried, or is known to be none', async () => {
  await using host = await startHost({ listen: false })
  const keys = numbersOf((await host.json('GET', '/api/config/schema')).body)
  const tried = groups.flatMap(({ limits }) => Object.keys(limits))
  const known = [...tried, ...Object.keys(elsewhere), ...Object.keys(notLimits)]
  expect({
    forgotten: [...new Set(keys)].filter((key) => !known.includes(key)),
    gone: known.filter((key) => !keys.includes(key)),
    twice: known.filter((key, at) => known.indexOf(key) !== at),
  }).toEqual({ forgotten: [], gone: [], twice: [] })
  expect(tried.length).toBeGreaterThan(60)
  for (const [key, [file, name]] of Object.entries(elsewhere))
    expect({
      key,
      named: (await readFile(fileURLToPath(new URL(`../../${file}`, import.meta.url)), 'utf8')).includes(name),
    }).toEqual({ key, named: true })
})

interface Node {
  readonly type?: string
  readonly anyOf?: readonly Node[]
  readonly properties?: Readonly<Record<string, Node>>
  readonly additionalProperties?: Node | boolean
  readonly items?: Node
}
/** Dotted keys of all numbers; `*` stands for names that are free. */
function numbersOf(node: Node, path = ''): readonly string[] {
  const at = (key: string): string => (path === '' ? key : `${path}.${key}`)
  return (node.anyOf ?? [node]).flatMap((one) => [
    ...(one.type === 'integer' || one.type === 'number' ? [path] : []),
    ...Object.entries(one.properties ?? {}).flatMap(([key, inner]) => numbersOf(inner, at(key))),
    ...(typeof one.additionalProperties === 'object' ? numbersOf(one.additionalProperties, at('*')) : []),
    ...(one.items ? numbersOf(one.items, `${path}[]`) : []),
  ])
}

async function open(config: LimitGroup['config']): Promise<LimitStage & AsyncDisposable> {
  const [fake, outside, folders] = [await startFakeProvider(), await startOutside(), await builtInFolders()]
  const host = await startHost({
    config: toConfig(fake, config(outside, fake)),
    plugins: [...folders, fileURLToPath(new URL('../fixtures/tool-caller', import.meta.url))],
  })
  let serial = 0
  const post: LimitStage['post'] = (path, body) => host.json('POST', path, body)
  return {
    host,
    fake,
    outside,
    post,
    async agent(more = '') {
      const { status, body } = await post('/api/agents', {
        manifest_toml: `name = "agent-${++serial}"\n${more}\n[capabilities]\ntools = ["*"]\nnetwork = ["*"]\nshell = ["*"]\nagent_spawn = true\nagent_message = ["*"]\n`,
      })
      expect([status, body]).toEqual([201, expect.anything()])
      return body.agent_id
    },
    tool: async (agent, name, args = {}) => (await post(`/test/tools/${name}`, { agent_id: agent, args })).body,
    async [Symbol.asyncDispose]() {
      await host[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
      await outside[Symbol.asyncDispose]()
    },
  }
}
