import type * as v from 'valibot'
import { parse, UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { readStreamed } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ProviderClient, ProviderLink } from 'svc/providers'
import { Decoder } from './decode.ts'
import { encode } from './encode.ts'
import { failureOf } from './errors.ts'
import type { Config } from './index.ts'
import { percent, RequestSigner } from './sign.ts'
import type { Credentials } from './sign.ts'
import { Models, Profiles } from './wire.ts'

/** Pages of the list of inference profiles, of 1,000 each. */
const MAX_PAGES = 10

export function createClient(link: ProviderLink<Config>, defaultModel: string): ProviderClient {
  const base = link.baseUrl.replace(/\/+$/, '')
  // What runs models and what lists them are two services of a region; another address stands for both.
  const lists = base.replace(/^(https:\/\/bedrock)-runtime(?=[.-])/, '$1')
  // The signature names a region; the address knows it best.
  const region = /bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.amazonaws\./.exec(base)?.[1] ?? link.config.region
  const signer = new RequestSigner(region)

  async function call(url: URL, signal: AbortSignal, body?: string): Promise<OutboundResponse> {
    signal.throwIfAborted()
    const credentials = credentialsOf(await link.apiKey(), link.config, link.name)
    const type = body === undefined ? undefined : 'application/json'
    const method = body === undefined ? 'GET' : 'POST'
    const response = await link.fetch(url, {
      signal,
      method,
      ...(body !== undefined && { body }),
      headers: {
        accept: body === undefined ? 'application/json' : 'application/vnd.amazon.eventstream',
        ...(type !== undefined && { 'content-type': type }),
        ...(credentials && (await signer.sign({ method, url, body: body ?? '', type }, credentials, Date.now()))),
      },
    })
    if (response.ok) return response
    throw await failureOf(link.name, response, Date.now())
  }

  async function converse(request: CompletionRequest, signal: AbortSignal): Promise<OutboundResponse> {
    const response = await call(
      new URL(`${base}/model/${percent(request.model)}/converse-stream`),
      signal,
      encode(request, link.config),
    )
    const type = response.header('content-type') ?? ''
    if (/eventstream/i.test(type)) return response
    for await (const _ of response.chunks()) break
    throw new UpstreamFailure(
      link.name,
      `${link.name} answered with ${type || 'nothing it names'} in the place of an event stream: the base URL is wrong or a proxy is in the way`,
      { reason: 'malformed', retry: 'never' },
    )
  }

  const complete = (request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> =>
    readStreamed(link.name, new Decoder(link.name, request), signal, () => converse(request, signal))

  async function read<S extends v.GenericSchema>(
    path: string,
    schema: S,
    signal: AbortSignal,
  ): Promise<v.InferOutput<S>> {
    const data = await (await call(new URL(`${lists}${path}`), signal)).json()
    try {
      return parse(schema, data)
    } catch (cause) {
      throw new UpstreamFailure(link.name, `${link.name} sent a list of models that cannot be read`, {
        reason: 'malformed',
        retry: 'never',
        cause,
      })
    }
  }

  /** Models that are called by their own id, and the profiles through which all others are. */
  async function models(signal: AbortSignal): Promise<readonly string[]> {
    const { modelSummaries } = await read(
      '/foundation-models?byInferenceType=ON_DEMAND&byOutputModality=TEXT',
      Models,
      signal,
    )
    const ids = new Set(modelSummaries.map(({ modelId }) => modelId))
    let next = ''
    for (let page = 0; page < MAX_PAGES; page++) {
      const { inferenceProfileSummaries, nextToken } = await read(
        `/inference-profiles?maxResults=1000${next}`,
        Profiles,
        signal,
      )
      for (const { inferenceProfileId } of inferenceProfileSummaries) ids.add(inferenceProfileId)
      if (!nextToken) break
      next = `&nextToken=${percent(nextToken)}`
    }
    return [...ids]
  }

  /** A key that may run models need not be one that may list them, so the proof is the shortest answer. */
  async function probe(signal: AbortSignal): Promise<{ model: string }> {
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

  return { complete, probe, models }
}

/** `undefined` when there is no key, as when it may not go to this address: then nothing is signed. */
function credentialsOf(
  key: string | undefined,
  { secret_access_key: secret, session_token: session }: Config,
  name: string,
): Credentials | undefined {
  if (key === undefined) return undefined
  const [, id, own, token] = /^(A[A-Z0-9]{15,127}):([^:]+)(?::(.+))?$/.exec(key) ?? []
  if (id !== undefined && own !== undefined) return { id, secret: own, session: token }
  if (!/^(?:AKIA|ASIA)[A-Z0-9]{12,124}$/.test(key)) return { bearer: key }
  // Lasting keys have no session; a token in the environment is another key's.
  if (secret !== undefined) return { id: key, secret, session: key.startsWith('ASIA') ? session : undefined }
  throw new UpstreamFailure(
    name,
    `The key of ${name} is an access key id without its secret: set AWS_SECRET_ACCESS_KEY or [providers.${name}] secret_access_key`,
    { reason: 'auth', retry: 'never' },
  )
}
