import { beforeAll, describe, expect, it } from 'vitest'
import { vendors } from '../../../adapters/providers/openai-compatible/vendors.ts'
import { aliases } from '../../../plugins/catalog/aliases.ts'
import type { Models } from '../../../plugins/catalog/models.ts'
import { own } from '../../../plugins/catalog/own.ts'
import { tierOf } from '../../../plugins/catalog/tier.ts'
import { openModels, readEntries } from './rig.ts'

let models: Models
beforeAll(async () => {
  ;({ models } = await openModels())
})

describe('the catalog', () => {
  it('knows 200 models of 30 providers in full', async () => {
    const known = models
      .list()
      .filter(
        ({ contextWindow, maxOutputTokens, price, supports: { tools, vision, thinking } }) =>
          contextWindow !== null &&
          maxOutputTokens !== null &&
          price !== null &&
          tools !== null &&
          vision !== null &&
          thinking !== null,
      )
    expect(known.length).toBeGreaterThanOrEqual(400)
    expect(new Set(models.list().map(({ provider }) => provider)).size).toBeGreaterThanOrEqual(40)
    const drivers = new Set([
      ...vendors.map(({ name }) => name),
      'anthropic',
      'gemini',
      'bedrock',
      'vertex-ai',
      'cohere',
      'replicate',
      'azure',
      'github-copilot',
      'builtin',
    ])
    const reachable = models.list().filter(({ provider }) => drivers.has(provider))
    expect(reachable.length).toBeGreaterThanOrEqual(200)
    expect(new Set(reachable.map(({ provider }) => provider)).size).toBeGreaterThanOrEqual(30)
  })
  it('has every id of a provider once, and no figure that cannot be', async () => {
    const entries = await readEntries()
    expect(new Set(entries.map(({ provider, id }) => `${provider} ${id}`)).size).toBe(entries.length)
    for (const { provider, id, prices, context, output } of entries) {
      for (const price of prices ?? []) {
        expect(price.output, id).toBeGreaterThanOrEqual(0)
        expect(price.cachedInput ?? 0, `${provider}/${id}`).toBeLessThanOrEqual(price.input)
        // What is free says so: a zero that means "nobody knows" would make a bill wrong without a sound.
        if (price.input === 0 && price.output === 0)
          expect(
            id.endsWith(':free') || ['builtin', 'ollama', 'lmstudio'].includes(provider),
            `${provider}/${id}`,
          ).toBe(true)
      }
      expect(context ?? 1024, id).toBeGreaterThanOrEqual(1024)
      expect(output ?? 1, id).toBeGreaterThan(0)
    }
  })
  it('has the model that every vendor is asked for when none is named', () => {
    const missing = vendors
      .filter(({ defaultModel }) => defaultModel !== 'default')
      .filter(({ name, defaultModel }) => !models.find(name, defaultModel))
      .map(({ name, defaultModel }) => `${name}/${defaultModel}`)
    expect(missing).toEqual([])
  })
  it('says where each figure of our own is from, and when it was read', () => {
    for (const { provider, id, source, read } of own)
      expect([source, read], `${provider}/${id}`).toEqual([
        expect.stringMatching(/\S/),
        expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      ])
  })
})

describe('a model is found', () => {
  it('by its id', () => {
    expect(models.find('openai', 'gpt-5-mini')).toMatchObject({
      provider: 'openai',
      id: 'gpt-5-mini',
      contextWindow: 400_000,
      supports: { tools: true, vision: true, thinking: true },
    })
  })
  it('by an id with slashes', () => {
    expect(models.find('openrouter', 'anthropic/claude-sonnet-4.5')?.id).toBe('anthropic/claude-sonnet-4.5')
  })
  it('by a dated form of its id', () => {
    expect(models.find('openai', 'gpt-5-mini-2025-08-07')?.price).toEqual(models.find('openai', 'gpt-5-mini')?.price)
  })
  it('by its own price where the dated form has one', () => {
    expect(models.find('openai', 'gpt-4o-2024-05-13')?.price?.input).toBe(5)
  })
  it('without its date where only dated forms are known', () => {
    expect(models.find('anthropic', 'claude-3-5-sonnet')?.id).toMatch(/^claude-3-5-sonnet/)
  })
  it('only with its provider: the same id costs something else elsewhere', () => {
    expect(models.find('groq', 'gpt-5-mini')).toBeUndefined()
    expect(models.find('cerebras', 'gpt-oss-120b')?.price?.input).not.toBe(
      models.find('fireworks', 'accounts/fireworks/models/gpt-oss-120b')?.price?.input,
    )
  })
  it('not by a name nobody gave it', () => {
    for (const name of ['', 'constructor', '__proto__', 'gpt', 'gpt-5-mini-turbo'])
      expect(models.find('openai', name)).toBeUndefined()
  })
})

describe('aliases', () => {
  it('all stand for a model that is known', () => {
    for (const [alias, { provider, model }] of aliases) expect(models.find(provider, model)?.id, alias).toBe(model)
  })
  it('are those that clients know', () => {
    for (const alias of [
      'sonnet',
      'opus',
      'haiku',
      'flash',
      'gpt4',
      'llama',
      'deepseek',
      'grok',
      'jamba',
      'claude-sonnet',
      'gpt5-mini',
      'gemini-pro',
      'mixtral',
      'codestral',
      'command-r',
      'kimi',
      'qwen-code',
      'free',
    ])
      expect(models.resolveAlias(alias), alias).toBeDefined()
  })
  it('are compared without regard to case', () => {
    expect(models.resolveAlias('Sonnet')).toEqual(models.resolveAlias('sonnet'))
  })
})

describe('tiers', () => {
  it.each([
    ['anthropic', 'x', 25, 'frontier'],
    ['anthropic', 'x', 20, 'frontier'],
    ['openai', 'x', 10, 'smart'],
    ['openai', 'x', 2, 'balanced'],
    ['groq', 'x', 0.79, 'fast'],
    ['ollama', 'x', 0, 'local'],
    ['qwen', 'qwen-flash', undefined, 'fast'],
    ['qwen', 'qwen-max', undefined, 'balanced'],
    ['x', 'gemini-pro', undefined, 'balanced'],
  ] as const)('%s/%s at %s USD is %s', (provider, id, usd, tier) => {
    expect(tierOf(provider, id, usd)).toBe(tier)
  })
})
