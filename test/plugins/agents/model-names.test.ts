import { expect, it } from 'vitest'
import type { Inference } from '../../../plugins/providers/contract.ts'
import { modelNames, modelWarnings } from '../../../plugins/agents/model-names.ts'

const inference: Inference = {
  resolve: () => Promise.reject(new Error('not asked for')),
  fallbacks: () => [],
  choose: () => Promise.reject(new Error('not asked for')),
  defaultProblem: () => Promise.resolve(undefined),
  admit: () => Promise.resolve(),
  doubt: () => Promise.resolve(undefined),
  complete: () => {
    throw new Error('not asked for')
  },
  embed: () => Promise.reject(new Error('not asked for')),
  providers: () => [
    {
      name: 'builtin',
      title: '',
      authStatus: 'no_key_needed',
      envVar: undefined,
      baseUrl: undefined,
      defaultModel: 'offline',
    },
    {
      name: 'openai',
      title: '',
      authStatus: 'configured',
      envVar: undefined,
      baseUrl: undefined,
      defaultModel: 'gpt-4o',
    },
  ],
  defaultModel: () => Promise.resolve({ provider: 'builtin', model: 'offline' }),
}

it.each([
  ['default', 'default', 'builtin', 'offline'],
  ['openai', 'default', 'openai', 'gpt-4o'],
  ['openai', 'o3', 'openai', 'o3'],
  ['default', 'o3', 'builtin', 'offline'],
  ['unknown', 'default', 'unknown', 'default'],
])('%s/%s is shown as %s/%s', async (provider, model, shownProvider, shownModel) => {
  expect((await modelNames(inference))({ provider, model })).toEqual({ provider: shownProvider, model: shownModel })
})

it('without providers the manifest is shown as it is', async () => {
  const names = await modelNames(undefined)
  expect(names({ provider: 'default', model: 'x' })).toEqual({ provider: 'default', model: 'x' })
})

it('warns of each model whose name is doubtful, unless it has an address of its own', async () => {
  const doubtful: Inference = { ...inference, doubt: ({ model }) => Promise.resolve(`no ${model}`) }
  const choice = { provider: 'openai', model: 'a' }
  const model = { ...choice, system_prompt: '', max_tokens: 1, temperature: 0, extra_params: {} }
  const fallbacks = [choice, { ...choice, base_url: 'http://127.0.0.1:1/v1' }]
  expect(await modelWarnings(doubtful, { model, fallback_models: fallbacks })).toEqual([
    'model: no a',
    'fallback_models.0: no a',
  ])
  expect(await modelWarnings(undefined, { model, fallback_models: fallbacks })).toEqual([])
})
