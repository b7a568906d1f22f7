import { UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { ApiClient, baseUrlOf, collectPages, probeCompletion, readStreamed } from 'svc/providers'
import type { CompletionRequest, ProviderClient, ProviderLink } from 'svc/providers'
import { readCredentials } from './credentials.ts'
import { Decoder } from './decode.ts'
import { encode } from './encode.ts'
import { classifyFailure } from './errors.ts'
import type { Config } from './index.ts'
import { percentEncode, RequestSigner } from './sign.ts'
import { Models, Profiles } from './wire.ts'

export function createClient(link: ProviderLink<Config>, defaultModel: string): ProviderClient {
  const { name, config } = link
  const base = baseUrlOf(link)
  // Running models and listing them are two services of a region. A configured address is used for both.
  const listBase = base.replace(/^(https:\/\/bedrock)-runtime(?=[.-])/, '$1')
  // The signature names the region. The address knows it best.
  const signer = new RequestSigner(
    /bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.amazonaws\./.exec(base)?.[1] ?? config.region,
  )
  const api = new ApiClient(link, {
    classifyFailure,
    async authenticate(url, { body }) {
      const credentials = readCredentials(await link.apiKey(), config, name)
      return credentials ? signer.sign(new URL(url), body, credentials, Date.now()) : {}
    },
  })

  async function converse(request: CompletionRequest, signal: AbortSignal): Promise<OutboundResponse> {
    const response = await api.send(`${base}/model/${percentEncode(request.model)}/converse-stream`, {
      signal,
      accept: 'application/vnd.amazon.eventstream',
      body: encode(request, config),
    })
    const type = response.header('content-type') ?? ''
    if (/eventstream/i.test(type)) return response
    // Ending the iteration closes the connection.
    for await (const _ of response.chunks()) break
    throw new UpstreamFailure(
      name,
      `${name} answered with ${type || 'no content type'} instead of an event stream: ` +
        'the base URL is wrong or a proxy is in the way',
      { reason: 'malformed', retry: 'never' },
    )
  }

  const complete: ProviderClient['complete'] = (request, signal) =>
    readStreamed(name, new Decoder(name, request), signal, () => converse(request, signal))

  /** Models that are called by their own id, and the inference profiles through which all others are called. */
  async function models(signal: AbortSignal): Promise<readonly string[]> {
    const what = 'a list of models'
    const { modelSummaries } = await api.json(
      `${listBase}/foundation-models?byInferenceType=ON_DEMAND&byOutputModality=TEXT`,
      { signal },
      { schema: Models, what },
    )
    const profiles = await collectPages(async (cursor) => {
      const token = cursor === undefined ? '' : `&nextToken=${percentEncode(cursor)}`
      const url = `${listBase}/inference-profiles?maxResults=1000${token}`
      const page = await api.json(url, { signal }, { schema: Profiles, what })
      return { items: page.inferenceProfileSummaries, next: page.nextToken }
    })
    return [
      ...new Set([
        ...modelSummaries.map(({ modelId }) => modelId),
        ...profiles.map(({ inferenceProfileId }) => inferenceProfileId),
      ]),
    ]
  }

  return {
    complete,
    models,
    // A key that may run models need not be one that may list them.
    probe: (signal) => probeCompletion(complete, defaultModel, signal),
  }
}
