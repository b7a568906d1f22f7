import * as v from 'valibot'
import { secret } from 'svc/sdk'
import { defineProvider, lazyClient } from 'svc/providers'
import type { ProviderDriver } from 'svc/providers'

const Credential = secret(v.pipe(v.string(), v.nonEmpty()))
const Config = v.object({
  region: v.optional(
    v.pipe(v.string(), v.regex(/^[a-z]{2,}(-[a-z]+)+-\d$/, 'expected a region such as eu-central-1')),
    'us-east-1',
  ),
  /** Belong to a key that is an access key id; a Bedrock API key needs neither. */
  secret_access_key: v.optional(Credential),
  session_token: v.optional(Credential),
  /** Mark the parts of a request that come again, for models that have a prompt cache. */
  prompt_caching: v.optional(v.boolean(), true),
  /** The most that is thought before an answer, for models that want a number. In tokens; the answer's limit includes it. */
  thinking_budget_tokens: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1024)), 16_000),
  /** Every request and answer passes through this guardrail. */
  guardrail: v.optional(v.object({ id: v.pipe(v.string(), v.nonEmpty()), version: v.optional(v.string(), 'DRAFT') })),
})
export type Config = v.InferOutput<typeof Config>

/**
 * The Converse API. Its key is a Bedrock API key, an access key id whose secret stands beside it, or all in one as `id:secret[:session token]`.
 * Source of the wire: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
 */
export const bedrock: ProviderDriver<typeof Config> = {
  name: 'bedrock',
  title: 'Amazon Bedrock',
  envVar: 'AWS_BEARER_TOKEN_BEDROCK',
  otherEnvVars: ['AWS_ACCESS_KEY_ID'],
  sharedKey: true,
  configVars: {
    region: ['AWS_REGION', 'AWS_DEFAULT_REGION'],
    secret_access_key: ['AWS_SECRET_ACCESS_KEY'],
    session_token: ['AWS_SESSION_TOKEN'],
  },
  defaultModel: 'amazon.nova-lite-v1:0',
  config: Config,
  address: ({ region }) => `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`,
  connect: (link) =>
    lazyClient(async () => (await import('./client.ts')).createClient(link, bedrock.defaultModel), { models: true }),
}

export default defineProvider('1.0.0', bedrock)
