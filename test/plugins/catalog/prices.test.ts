import { beforeAll, describe, expect, it } from 'vitest'
import type { Catalog, Price } from '../../../plugins/catalog/contract.ts'
import { openModels } from './rig.ts'

/** USD per million tokens as the vendors wrote them, read by a person: where, and when. */
interface Quoted {
  readonly provider: string
  readonly model: string
  readonly price: Price
  readonly source: string
  readonly read: string
}
const anthropic = {
  provider: 'anthropic',
  source: 'https://platform.claude.com/docs/en/about-claude/pricing',
  read: '2026-10-24',
} as const
const openai = {
  provider: 'openai',
  source: 'https://developers.openai.com/api/docs/pricing',
  read: '2026-09-22',
} as const
const gemini = {
  provider: 'gemini',
  source: 'https://ai.google.dev/gemini-api/docs/pricing',
  read: '2026-09-20',
} as const
const deepseek = {
  provider: 'deepseek',
  source: 'https://api-docs.deepseek.com/quick_start/pricing',
  read: '2026-11-15',
} as const
const groq = { provider: 'groq', source: 'https://console.groq.com/docs/models', read: '2026-05-01' } as const

const table: readonly Quoted[] = [
  { ...anthropic, model: 'claude-fable-5', price: { input: 10, output: 50, cachedInput: 1, cacheWrite: 12.5 } },
  { ...anthropic, model: 'claude-fable-5-1', price: { input: 10, output: 50, cachedInput: 0.25, cacheWrite: 12.5 } },
  { ...anthropic, model: 'claude-opus-5', price: { input: 5, output: 25, cachedInput: 0.5, cacheWrite: 6.25 } },
  { ...anthropic, model: 'claude-opus-5-5', price: { input: 4, output: 20, cachedInput: 0.2, cacheWrite: 5 } },
  { ...anthropic, model: 'claude-opus-4-8', price: { input: 5, output: 25, cachedInput: 0.5, cacheWrite: 6.25 } },
  { ...anthropic, model: 'claude-opus-4-1', price: { input: 15, output: 75, cachedInput: 1.5, cacheWrite: 18.75 } },
  { ...anthropic, model: 'claude-sonnet-5', price: { input: 2, output: 10, cachedInput: 0.2, cacheWrite: 2.5 } },
  { ...anthropic, model: 'claude-sonnet-5-5', price: { input: 2, output: 10, cachedInput: 0.1, cacheWrite: 2.5 } },
  { ...anthropic, model: 'claude-sonnet-4-5', price: { input: 3, output: 15, cachedInput: 0.3, cacheWrite: 3.75 } },
  { ...anthropic, model: 'claude-haiku-4-5', price: { input: 1, output: 5, cachedInput: 0.1, cacheWrite: 1.25 } },
  {
    ...anthropic,
    model: 'claude-haiku-5-5',
    price: {
      input: 0.1,
      output: 0.5,
      cachedInput: 0.01,
      cacheWrite: 0.125,
      long: { aboveInput: 100_000, input: 0.5, output: 2.5, cachedInput: 0.05, cacheWrite: 0.625 },
    },
  },
  {
    ...openai,
    model: 'gpt-6-astra',
    price: {
      input: 10,
      output: 50,
      cachedInput: 1,
      cacheWrite: 12.5,
      long: { aboveInput: 271_999, input: 20, output: 75, cachedInput: 2, cacheWrite: 25 },
    },
  },
  {
    ...openai,
    model: 'gpt-6-sol',
    price: {
      input: 2,
      output: 10,
      cachedInput: 0.2,
      cacheWrite: 2.5,
      long: { aboveInput: 272_000, input: 4, output: 15, cachedInput: 0.4, cacheWrite: 5 },
    },
  },
  {
    ...openai,
    model: 'gpt-5.6-terra',
    price: {
      input: 2,
      output: 12,
      cachedInput: 0.2,
      cacheWrite: 2.5,
      long: { aboveInput: 271_999, input: 4, output: 18, cachedInput: 0.4, cacheWrite: 5 },
    },
  },
  { ...openai, model: 'gpt-5.4-mini', price: { input: 0.75, output: 4.5, cachedInput: 0.075 }, read: '2026-05-04' },
  { ...openai, model: 'gpt-5-mini', price: { input: 0.25, output: 2, cachedInput: 0.025 } },
  { ...openai, model: 'gpt-4o-mini', price: { input: 0.15, output: 0.6, cachedInput: 0.075 } },
  { ...gemini, model: 'gemini-3.8-flash', price: { input: 0.75, output: 3.75, cachedInput: 0.075 } },
  { ...gemini, model: 'gemini-3.5-flash', price: { input: 1.5, output: 9, cachedInput: 0.15 } },
  {
    ...gemini,
    model: 'gemini-3.1-pro-preview',
    price: {
      input: 2,
      output: 12,
      cachedInput: 0.2,
      long: { aboveInput: 200_000, input: 4, output: 18, cachedInput: 0.4 },
    },
  },
  {
    ...gemini,
    model: 'gemini-2.5-pro',
    price: {
      input: 1.25,
      output: 10,
      cachedInput: 0.125,
      long: { aboveInput: 200_000, input: 2.5, output: 15, cachedInput: 0.25 },
    },
  },
  { ...deepseek, model: 'deepseek-flash', price: { input: 0.15, output: 0.6, cachedInput: 0.003 } },
  { ...deepseek, model: 'deepseek-v4-pro', price: { input: 0.66, output: 1.98, cachedInput: 0.022 } },
  { ...groq, model: 'llama-3.3-70b-versatile', price: { input: 0.59, output: 0.79 } },
  { ...groq, model: 'openai/gpt-oss-120b', price: { input: 0.15, output: 0.6, cachedInput: 0.075 } },
  {
    provider: 'xai',
    model: 'grok-4.5',
    price: {
      input: 2,
      output: 6,
      cachedInput: 0.3,
      long: { aboveInput: 199_999, input: 4, output: 12, cachedInput: 0.6 },
    },
    source: 'https://docs.x.ai/developers/grok-4-5',
    read: '2026-07-13',
  },
  {
    provider: 'cohere',
    model: 'command-r-08-2024',
    price: { input: 0.15, output: 0.6 },
    source: 'https://cohere.com/pricing',
    read: '2026-11-11',
  },
]

describe('prices as the vendors wrote them', () => {
  let catalog: Catalog
  beforeAll(async () => {
    catalog = (await openModels()).models
  })
  it.each(table)('$provider/$model, $source, $read', ({ provider, model, price }) => {
    expect(catalog.find(provider, model)?.price).toEqual(price)
  })
})

describe('prices that depend on the moment', () => {
  it('DeepSeek costs twice as much in its peak hours, on weekdays', async () => {
    let now = ''
    const { models } = await openModels(() => new Date(now))
    const input = (at: string): number | undefined => {
      now = at
      return models.find('deepseek', 'deepseek-flash')?.price?.input
    }
    expect(input('2026-11-20T00:59:59Z')).toBe(0.15)
    expect(input('2026-11-20T01:00:00Z')).toBe(0.3)
    expect(input('2026-11-20T04:00:00Z')).toBe(0.15)
    expect(input('2026-11-20T09:59:59Z')).toBe(0.3)
    expect(input('2026-11-21T02:00:00Z')).toBe(0.15)
    expect(input('2026-11-22T07:00:00Z')).toBe(0.15)
  })
  it('an announced price holds from its day', async () => {
    let now = '2026-12-31T23:59:59Z'
    const { models } = await openModels(() => new Date(now))
    expect(models.find('gemini', 'gemini-3.8-flash')?.price?.output).toBe(3.75)
    now = '2027-01-01T00:00:00Z'
    expect(models.find('gemini', 'gemini-3.8-flash')?.price?.output).toBe(7.5)
  })
})
