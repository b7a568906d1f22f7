import { createPublicKey, createVerify, generateKeyPairSync } from 'node:crypto'
import type { ProviderClient } from 'svc/providers'
import { gemini, vertexAi } from '../../adapters/providers/gemini/index.ts'
import { createOutbound } from '../../core/net/outbound.ts'
import { request } from '../contract/provider.ts'
import type { ProviderStage } from '../contract/provider.ts'
import { googleProblem, startFakeGemini } from './fake-gemini.ts'
import type { FakeGemini } from './fake-gemini.ts'
import { outboundSettings } from './provider-stage.ts'
import type { Answering, RecordedCall } from './vendor-server.ts'

const KEY = 'AIza-test-key'
/** One for all: it takes longest to make. */
const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
export interface GeminiStage extends ProviderStage {
  readonly fake: FakeGemini
}

/** The Gemini API with a key. */
export async function openGemini(model = 'gemini-3-flash-preview', key = KEY): Promise<GeminiStage> {
  const fake = await startFakeGemini({
    prefix: '/v1beta/models',
    admit: ({ headers }) =>
      headers['x-goog-api-key'] === KEY
        ? undefined
        : googleProblem(400, 'API key not valid. Please pass a valid API key.', [
            {
              '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
              reason: 'API_KEY_INVALID',
              domain: 'googleapis.com',
            },
          ]),
  })
  const outbound = createOutbound({ settings: () => outboundSettings })
  const client = gemini.connect({
    name: 'gemini',
    config: {},
    baseUrl: fake.origin,
    fetch: outbound.forOperator(),
    apiKey: async () => key,
  })
  return stage(fake, client, model, outbound)
}

export interface VertexStage extends GeminiStage {
  /** The JSON of the service account. */
  readonly key: string
  /** Grants of tokens so far. */
  readonly grants: () => number
  /** The tokens given out so far are worth nothing any more. */
  revoke(): void
}
/** A project of Google Cloud behind a service account: the fake checks its signature and gives out tokens. */
export async function openVertex({
  expiresIn = 3599,
  project,
  key: given,
}: { readonly expiresIn?: number; readonly project?: string; readonly key?: string } = {}): Promise<VertexStage> {
  let grants = 0
  let valid = ''
  const token = ({ method, url, text, headers }: RecordedCall, answer: Answering): boolean => {
    if (url.pathname !== '/token') return false
    const form = new URLSearchParams(text)
    const wrong =
      method !== 'POST' || headers['content-type'] !== 'application/x-www-form-urlencoded'
        ? 'invalid_request'
        : form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer'
          ? 'unsupported_grant_type'
          : isSigned(
                form.get('assertion') ?? '',
                pair.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
                url.href,
              )
            ? undefined
            : 'invalid_grant'
    if (wrong) {
      answer.json(400, { error: wrong, error_description: 'Invalid JWT Signature.' })
      return true
    }
    valid = `ya29.token-${++grants}`
    answer.json(200, { access_token: valid, expires_in: expiresIn, token_type: 'Bearer' })
    return true
  }
  const fake = await startFakeGemini({
    prefix: `/v1beta1/projects/${project ?? 'own-project'}/locations/global/publishers/google/models`,
    other: token,
    admit: ({ headers }) =>
      headers.authorization === `Bearer ${valid}`
        ? undefined
        : googleProblem(401, 'Request had invalid authentication credentials.'),
  })
  const key =
    given ??
    JSON.stringify({
      type: 'service_account',
      project_id: 'own-project',
      private_key_id: 'k1',
      client_email: 'svc@own-project.iam.gserviceaccount.com',
      token_uri: `${fake.origin}/token`,
      private_key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    })
  const outbound = createOutbound({ settings: () => outboundSettings })
  const client = vertexAi.connect({
    name: 'vertex-ai',
    config: { location: 'global', project },
    baseUrl: fake.origin,
    fetch: outbound.forOperator(),
    apiKey: async () => key,
  })
  return {
    ...stage(fake, client, 'gemini-2.5-pro', outbound),
    key,
    grants: () => grants,
    revoke: () => {
      valid = 'none'
    },
  }
}

function stage(fake: FakeGemini, client: ProviderClient, model: string, outbound: AsyncDisposable): GeminiStage {
  return {
    fake,
    client,
    play(scenario) {
      fake.play(scenario)
      return { ...request('go on'), model: scenario.kind === 'embed' ? 'gemini-embedding-001' : model }
    },
    playMedia(scenario) {
      if (scenario.kind !== 'images') throw new Error(`Gemini makes no ${scenario.kind}`)
      for (const image of scenario.images) fake.playPicture(image)
      return { ...request('go on'), model: 'gemini-nano-banana-2.1' }
    },
    pictureModel: 'gemini-nano-banana-2.1',
    picturesAtOnce: 1,
    heardMedia: () => fake.heardPicture(),
    received: () => fake.completions.length,
    heard: () => fake.heard(),
    lastClosed: () => fake.completions.at(-1)?.closed ?? Promise.reject(new Error('no request')),
    async [Symbol.asyncDispose]() {
      await outbound[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
    },
  }
}

function isSigned(assertion: string, publicKey: string, audience: string): boolean {
  const [head = '', claims = '', signature = ''] = assertion.split('.')
  const read = (part: string): Record<string, unknown> =>
    JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>
  const { alg } = read(head)
  const { iss, scope, aud, iat, exp } = read(claims)
  const now = Date.now() / 1000
  return (
    alg === 'RS256' &&
    typeof iss === 'string' &&
    iss.endsWith('.iam.gserviceaccount.com') &&
    scope === 'https://www.googleapis.com/auth/cloud-platform' &&
    aud === audience &&
    Number(iat) <= now + 60 &&
    Number(exp) > now &&
    Number(exp) - Number(iat) <= 3600 &&
    createVerify('RSA-SHA256')
      .update(`${head}.${claims}`)
      .verify(createPublicKey(publicKey), Buffer.from(signature, 'base64url'))
  )
}
