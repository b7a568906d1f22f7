import { ApiClient, chooseModel, collectPages, readStreamed } from 'svc/providers'
import type { ProviderClient, ProviderLink } from 'svc/providers'
import { Decoder } from './decode.ts'
import { createEmbedder } from './embed.ts'
import { encode } from './encode.ts'
import type { Endpoint } from './endpoint.ts'
import { classifyFailure } from './errors.ts'
import { createImager } from './images.ts'
import { ModelPage } from './wire.ts'

const accept = '*/*'

/** Speaks generateContent at one of its endpoints. */
export function createClient(endpoint: Endpoint, link: ProviderLink<unknown>, defaultModel: string): ProviderClient {
  const api = new ApiClient(link, {
    classifyFailure,
    authenticate: (_url, { signal }) => endpoint.headers(signal),
    onUnauthorized: () => endpoint.clear(),
  })

  async function models(signal: AbortSignal): Promise<readonly string[]> {
    const url = `${await endpoint.modelsUrl(signal)}?pageSize=1000`
    return collectPages(async (cursor) => {
      const page = await api.json(
        cursor === undefined ? url : `${url}&pageToken=${encodeURIComponent(cursor)}`,
        { signal, accept },
        { schema: ModelPage, what: 'a list of models' },
      )
      const own = (page.models ?? [])
        .filter(({ supportedGenerationMethods: methods }) => methods?.includes('generateContent') !== false)
        .map(({ name }) => name.replace(/^models\//, ''))
      const published = (page.publisherModels ?? []).map(({ name }) =>
        name.replace(/^publishers\/google\/models\//, ''),
      )
      return { items: [...own, ...published], next: page.nextPageToken }
    })
  }

  async function probe(signal: AbortSignal): Promise<{ readonly model: string }> {
    if (endpoint.modelsProveKey) return { model: chooseModel(await models(signal), defaultModel) }
    // Counting tokens is free and proves the address, the project and the key.
    const url = await endpoint.methodUrl(defaultModel, 'countTokens', signal)
    const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] })
    const response = await api.send(url, { signal, accept, body })
    await response.text()
    return { model: defaultModel }
  }

  return {
    models,
    probe,
    embed: createEmbedder(endpoint, api),
    createImages: createImager(link.name, endpoint, api),
    complete: (request, signal) =>
      readStreamed(link.name, new Decoder(link.name, request), signal, async () => {
        signal.throwIfAborted()
        const url = await endpoint.methodUrl(request.model, 'streamGenerateContent', signal)
        return api.send(`${url}?alt=sse`, { signal, accept, body: encode(request) })
      }),
  }
}
