import * as v from 'valibot'
import { secret } from 'svc/sdk'
import { defineProvider, lazyClient } from 'svc/providers'
import type { ProviderDriver } from 'svc/providers'

const credential = (description: string) => secret(v.pipe(v.string(), v.nonEmpty(), v.description(description)))
const Config = v.object({
  region: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[a-z]{2,}(-[a-z]+)+-\d$/, 'expected a region such as eu-central-1'),
      v.description('AWS region, such as eu-central-1.'),
    ),
    'us-east-1',
  ),
  secret_access_key: v.optional(credential('Secret of a key that is an access key id; a Bedrock API key needs none.')),
  session_token: v.optional(credential('Session token of a temporary access key.')),
  prompt_caching: v.optional(
    v.pipe(v.boolean(), v.description('Marks the parts of a request for the prompt cache, for models that have one.')),
    true,
  ),
  thinking_budget_tokens: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1024),
      v.description('Thinking budget in tokens, for models that take one; counts towards the limit of the answer.'),
    ),
    16_000,
  ),
  guardrail: v.optional(
    v.pipe(
      v.object({
        id: v.pipe(v.string(), v.nonEmpty(), v.description('Id of the guardrail.')),
        version: v.optional(v.pipe(v.string(), v.description('Version of the guardrail.')), 'DRAFT'),
      }),
      v.description('Guardrail applied to every request and answer.'),
    ),
  ),
})
export type Config = v.InferOutput<typeof Config>

/**
 * The Converse API. The key is a Bedrock API key, an access key id whose secret is configured, or both in the form
 * `id:secret[:session token]`.
 * Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
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
