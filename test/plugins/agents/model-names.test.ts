import { expect, it } from 'vitest'
import type { Inference } from '../../../plugins/providers/contract.ts'
import { modelNames, splitModel } from '../../../plugins/agents/model-names.ts'

const inference: Inference = {
  resolve: () => Promise.reject(new Error('not asked for')),
  fallbacks: () => [],
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
  ['default', 'o3', 'builtin', 'o3'],
  ['unknown', 'default', 'unknown', 'default'],
])('%s/%s is shown as %s/%s', async (provider, model, shownProvider, shownModel) => {
  expect((await modelNames(inference))({ provider, model })).toEqual({ provider: shownProvider, model: shownModel })
})

it('without providers the manifest is shown as it is', async () => {
  const names = await modelNames(undefined)
  expect(names({ provider: 'default', model: 'x' })).toEqual({ provider: 'default', model: 'x' })
})

it.each([
  ['openai/gpt-4o', { provider: 'openai', model: 'gpt-4o' }],
  ['gpt-4o', { model: 'gpt-4o' }],
  ['meta-llama/llama-3', { model: 'meta-llama/llama-3' }],
  ['openai/', { model: 'openai/' }],
  ['/x', { model: '/x' }],
])('%s names %j', (id, named) => {
  expect(splitModel(inference, id)).toEqual(named)
  expect(splitModel(undefined, id)).toEqual({ model: id })
})
