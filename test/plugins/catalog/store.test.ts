import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../plugins/catalog/data.ts'
import { engines } from '../../core/storage/engines.ts'
import { openModels } from './rig.ts'

const AT = '2026-11-20T12:00:00.000Z'
const entry = (id: string, input = 1): Entry => ({
  provider: 'openai',
  id,
  name: id,
  context: 1000,
  output: 100,
  tools: true,
  vision: null,
  thinking: null,
  tier: 'custom',
  prices: [{ input, output: 2 }],
})

describe.each(engines)('what is added to the catalog on %s', (engine) => {
  it('is kept, replaced and removed', async () => {
    const { store, models } = await openModels(undefined, engine)
    await store.commit(
      store.putAlias('a', { provider: 'openai', model: 'x' }, AT),
      store.putAlias('sonnet', undefined, AT),
      store.addCustom(entry('own/x'), AT),
    )
    await store.commit(store.putAlias('a', { provider: 'groq', model: 'y' }, AT))
    models.changed()
    await models.ready()
    expect([models.resolveAlias('a'), models.resolveAlias('sonnet'), models.find('openai', 'own/x')?.price]).toEqual([
      { provider: 'groq', model: 'y' },
      undefined,
      { input: 1, output: 2 },
    ])
    await store.commit(store.removeAlias('a'), store.removeAlias('sonnet'), store.removeCustom('openai', 'own/x'))
    models.changed()
    await models.ready()
    expect([models.resolveAlias('a'), models.resolveAlias('sonnet')?.provider, models.find('openai', 'own/x')]).toEqual(
      [undefined, 'anthropic', undefined],
    )
  })
  it('is not there twice, and what comes with it is not there then either', async () => {
    const { store } = await openModels(undefined, engine)
    await store.commit(store.addCustom(entry('own/x'), AT))
    await expect(
      store.commit(store.putAlias('b', { provider: 'p', model: 'm' }, AT), store.addCustom(entry('own/x', 5), AT)),
    ).rejects.toThrow()
    expect([await store.aliases(), await store.custom()]).toEqual([[], [entry('own/x')]])
  })
  it('has one registry, the newest', async () => {
    const { store } = await openModels(undefined, engine)
    const state = (version: string) => ({ url: 'https://r.example/api.json', version, fetched_at: AT, models: 1 })
    for (const version of ['1', '2']) await store.commit(store.putRegistry(state(version), [entry(version)]))
    expect([await store.registryState(), (await store.registry())?.entries]).toEqual([state('2'), [entry('2')]])
  })
})
