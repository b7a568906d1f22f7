import { parse, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { readStreamed } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ProviderClient, ProviderLink } from 'svc/providers'
import { takesTemperature } from './claude.ts'
import { Decoder } from './decode.ts'
import { encode } from './encode.ts'
import { failureOf } from './errors.ts'
import type { Config } from './index.ts'
import { ModelList } from './wire.ts'

// Decision: the newer version knows no temperature, so models that take one are asked in the older, which others who
// speak this wire know as
// well. Of what is sent and read here nothing else differs. Source:
// https://platform.claude.com/docs/en/api/migration-2026-10-21
const OLDER = '2023-06-01'
const NEWER = '2026-10-21'
/** Pages of the list of models; the vendor has about fifty models and a page holds a thousand. */
const MAX_PAGES = 10

export function createClient(link: ProviderLink<Config>, defaultModel: string): ProviderClient {
  const base = link.baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '')
  const { config } = link

  async function call(path: string, signal: AbortSignal, version: string, body?: string): Promise<OutboundResponse> {
    signal.throwIfAborted()
    const key = await link.apiKey()
    const response = await link.fetch(`${base}/v1${path}`, {
      signal,
      headers: {
        'anthropic-version': version,
        accept: body === undefined ? 'application/json' : 'text/event-stream',
        ...(config.betas.length > 0 && { 'anthropic-beta': config.betas.join(',') }),
        ...(key !== undefined && { 'x-api-key': key }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { method: 'POST', body }),
    })
    if (response.ok) return response
    throw await failureOf(link.name, response, Date.now())
  }

  const complete = (request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> =>
    readStreamed(link.name, new Decoder(link.name, request), signal, () =>
      call('/messages', signal, takesTemperature(request.model) ? OLDER : NEWER, encode(request, config)),
    )

  async function models(signal: AbortSignal): Promise<readonly string[]> {
    const ids: string[] = []
    let after = ''
    for (let page = 0; page < MAX_PAGES; page++) {
      const response = await call(`/models?limit=1000${after}`, signal, OLDER)
      const data = await response.json()
      let list: ReturnType<typeof parse<typeof ModelList>>
      try {
        list = parse(ModelList, data)
      } catch (cause) {
        throw new UpstreamFailure(link.name, `${link.name} sent a list of models that cannot be read`, {
          reason: 'malformed',
          retry: 'never',
          cause,
        })
      }
      for (const { id } of list.data) ids.push(id)
      if (!list.has_more || !list.last_id) break
      after = `&after_id=${encodeURIComponent(list.last_id)}`
    }
    return ids
  }

  async function probe(signal: AbortSignal): Promise<{ model: string }> {
    try {
      const found = await models(signal)
      return { model: found.includes(defaultModel) ? defaultModel : (found[0] ?? defaultModel) }
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.reason !== 'not_found') throw error
      // Others that speak this wire have no list; the shortest answer proves the address and the key as well.
      for await (const event of complete(
        {
          model: defaultModel,
          system: '',
          turns: [{ role: 'user', parts: [{ type: 'text', text: 'Hi' }] }],
          tools: [],
          maxTokens: 1,
        },
        signal,
      ))
        if (event.type === 'end') break
      return { model: defaultModel }
    }
  }

  return { complete, probe, models }
}
