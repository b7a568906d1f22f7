import { parse, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { readStreamed } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ProviderClient, ProviderLink } from 'svc/providers'
import { Decoder } from './decode.ts'
import type { Endpoint } from './endpoint.ts'
import { embedder } from './embed.ts'
import { encode } from './encode.ts'
import { failureOf } from './errors.ts'
import { ModelPage } from './wire.ts'

const PAGE = 1000
/** Far more than there are. */
const MAX_PAGES = 10

/** Speaks generateContent at one of its endpoints. */
export function createClient(endpoint: Endpoint, link: ProviderLink<unknown>, defaultModel: string): ProviderClient {
  async function call(url: string, signal: AbortSignal, body?: string): Promise<OutboundResponse> {
    signal.throwIfAborted()
    const response = await link.fetch(url, {
      signal,
      headers: {
        accept: '*/*',
        ...(await endpoint.headers(signal)),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { method: 'POST', body }),
    })
    if (response.ok) return response
    if (response.status === 401) endpoint.forget()
    throw await failureOf(link.name, response, Date.now())
  }

  const complete = (request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> =>
    readStreamed(link.name, new Decoder(link.name, request), signal, async () => {
      signal.throwIfAborted()
      return call(
        `${await endpoint.method(request.model, 'streamGenerateContent', signal)}?alt=sse`,
        signal,
        encode(request),
      )
    })

  async function models(signal: AbortSignal): Promise<readonly string[]> {
    const ids: string[] = []
    let token = ''
    const list = await endpoint.models(signal)
    for (let page = 0; page < MAX_PAGES; page++) {
      const data = await (await call(`${list}?pageSize=${PAGE}${token}`, signal)).json()
      try {
        const read = parse(ModelPage, data)
        for (const { name, supportedGenerationMethods } of read.models ?? [])
          if (supportedGenerationMethods?.includes('generateContent') !== false) ids.push(name.replace(/^models\//, ''))
        for (const { name } of read.publisherModels ?? []) ids.push(name.replace(/^publishers\/google\/models\//, ''))
        if (!read.nextPageToken) break
        token = `&pageToken=${encodeURIComponent(read.nextPageToken)}`
      } catch (cause) {
        throw new UpstreamFailure(link.name, `${link.name} sent a list of models that cannot be read`, {
          reason: 'malformed',
          retry: 'never',
          cause,
        })
      }
    }
    return ids
  }

  async function probe(signal: AbortSignal): Promise<{ model: string }> {
    if (endpoint.lists) {
      const found = await models(signal)
      return { model: found.includes(defaultModel) ? defaultModel : (found[0] ?? defaultModel) }
    }
    // Counting tokens is free and proves the address, the project and the key.
    await (
      await call(
        await endpoint.method(defaultModel, 'countTokens', signal),
        signal,
        JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }),
      )
    ).text()
    return { model: defaultModel }
  }

  return { complete, models, probe, embed: embedder(endpoint, link.name, call) }
}
