import { describe, expect, it } from 'vitest'
import type { Catalog, CatalogModel } from '../../../plugins/catalog/contract.ts'
import type { Inference } from '../../../plugins/providers/contract.ts'
import { resolveVisionModel } from '../../../plugins/vision/model.ts'

const model = (id: string, vision: boolean | null, input: number | null, provider = 'p'): CatalogModel => ({
  id,
  provider,
  name: id,
  contextWindow: null,
  maxOutputTokens: null,
  price: input === null ? null : { input, output: 1 },
  supports: { tools: true, vision, streaming: true, thinking: null },
  tier: 'fast',
  origin: 'shipped',
})
const models = [
  model('blind', false, 1),
  model('unknown', null, 1),
  model('dear', true, 9),
  model('cheap', true, 2),
  model('unpriced', true, null),
  model('blind', false, 1, 'q'),
  model('elsewhere', true, 1, 'r'),
]
const catalog: Catalog = {
  ready: async () => {},
  find: (provider, id) => models.find((one) => one.provider === provider && one.id === id),
  resolveAlias: () => undefined,
  aliasLookup: async () => () => undefined,
  list: (provider) => models.filter((one) => provider === undefined || one.provider === provider),
}
const never = (): never => {
  throw new Error('not asked for')
}
const inference = (defaultModel: string): Inference => ({
  resolve: async ({ provider, model }) => ({ provider, model, price: undefined, contextWindow: 1 }),
  complete: never,
  embed: never,
  fallbacks: () => [],
  choose: never,
  defaultProblem: () => Promise.resolve(undefined),
  admit: never,
  doubt: never,
  defaultModel: never,
  providers: () => [
    { name: 'p', title: '', authStatus: 'configured', envVar: undefined, baseUrl: undefined, defaultModel },
  ],
})
const chosen = async (
  own: { provider: string; model: string },
  {
    configured,
    usual = 'blind',
    known = catalog,
  }: { configured?: { provider: string; model: string }; usual?: string; known?: Catalog | undefined } = {},
) => {
  const { provider, model } = await resolveVisionModel({ inference: inference(usual), catalog: known, configured }, own)
  return `${provider}/${model}`
}

describe('the model that looks at a picture', () => {
  it('is the one of the agent when that can see or nobody knows', async () => {
    expect(await chosen({ provider: 'p', model: 'dear' })).toBe('p/dear')
    expect(await chosen({ provider: 'p', model: 'unknown' })).toBe('p/unknown')
    expect(await chosen({ provider: 'p', model: 'new' })).toBe('p/new')
    expect(
      await resolveVisionModel(
        { inference: inference(''), catalog: undefined, configured: undefined },
        { provider: 'p', model: 'blind' },
      ),
    ).toMatchObject({ model: 'blind' })
  })
  it('is the usual one of the same provider, else its cheapest, when the own one is blind', async () => {
    expect(await chosen({ provider: 'p', model: 'blind' }, { usual: 'dear' })).toBe('p/dear')
    expect(await chosen({ provider: 'p', model: 'blind' })).toBe('p/cheap')
  })
  it('is never one of a provider that the agent does not talk to', async () => {
    await expect(chosen({ provider: 'q', model: 'blind' })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('[plugins.vision] see'),
    })
  })
  it('is the one of the operator before all', async () => {
    expect(await chosen({ provider: 'p', model: 'dear' }, { configured: { provider: 'r', model: 'elsewhere' } })).toBe(
      'r/elsewhere',
    )
  })
})
