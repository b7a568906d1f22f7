import { parse, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { estimateTokens, readStreamed } from 'svc/providers'
import type {
  CompletionEvent,
  CompletionRequest,
  EmbeddingRequest,
  Embeddings,
  ProviderClient,
  ProviderLink,
} from 'svc/providers'
import { Decoder } from './decode.ts'
import { encode } from './encode.ts'
import { failureOf } from './errors.ts'
import { ModelPage, Vectors } from './wire.ts'

const MAX_PAGES = 10

export function createClient(link: ProviderLink<unknown>, defaultModel: string): ProviderClient {
  const base = link.baseUrl.replace(/\/+$/, '')

  async function call(url: string, signal: AbortSignal, body?: string): Promise<OutboundResponse> {
    signal.throwIfAborted()
    const key = await link.apiKey()
    const response = await link.fetch(url, {
      signal,
      headers: {
        accept: '*/*',
        'x-client-name': 'svc',
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { method: 'POST', body }),
    })
    if (response.ok) return response
    throw await failureOf(link.name, response, Date.now())
  }

  const complete = (request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> =>
    readStreamed(link.name, new Decoder(link.name, request), signal, () =>
      call(`${base}/chat`, signal, encode(request)),
    )

  /** The list is still that of the first version of the API. */
  async function models(signal: AbortSignal): Promise<readonly string[]> {
    const ids: string[] = []
    let token = ''
    for (let page = 0; page < MAX_PAGES; page++) {
      const read = readAs(
        ModelPage,
        await (
          await call(`${base.replace(/\/v2$/, '/v1')}/models?page_size=1000&endpoint=chat${token}`, signal)
        ).json(),
        'a list of models',
      )
      for (const { name } of read.models) ids.push(name)
      if (!read.next_page_token) break
      token = `&page_token=${encodeURIComponent(read.next_page_token)}`
    }
    return ids
  }

  async function embed(
    { model, texts, purpose = 'document' }: EmbeddingRequest,
    signal: AbortSignal,
  ): Promise<Embeddings> {
    const body = JSON.stringify({
      model,
      texts: texts.map((text) => (text === '' ? ' ' : text)),
      input_type: `search_${purpose}`,
      embedding_types: ['float'],
      truncate: 'END',
    })
    const { embeddings, meta } = readAs(Vectors, await (await call(`${base}/embed`, signal, body)).json(), 'vectors')
    const input = meta?.billed_units?.input_tokens
    return {
      vectors: embeddings.float.map((values) => Float32Array.from(values)),
      usage:
        input == null
          ? { input: texts.reduce((sum, text) => sum + estimateTokens(text), 0), estimated: true }
          : { input },
    }
  }

  function readAs<T extends typeof ModelPage | typeof Vectors>(schema: T, data: unknown, what: string) {
    try {
      return parse(schema, data)
    } catch (cause) {
      throw new UpstreamFailure(link.name, `${link.name} sent ${what} that cannot be read`, {
        reason: 'malformed',
        retry: 'never',
        cause,
      })
    }
  }

  async function probe(signal: AbortSignal): Promise<{ model: string }> {
    const found = await models(signal)
    return { model: found.includes(defaultModel) ? defaultModel : (found[0] ?? defaultModel) }
  }

  return { complete, models, probe, embed }
}
