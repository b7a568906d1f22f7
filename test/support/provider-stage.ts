import * as v from 'valibot'
import { openAiCompatible } from '../../adapters/providers/openai-compatible/driver.ts'
import { builtin } from '../../adapters/providers/builtin/driver.ts'
import { vendors } from '../../adapters/providers/openai-compatible/vendors.ts'
import { createOutbound } from '../../core/net/outbound.ts'
import type { OutboundSettings } from '../../core/net/outbound.ts'
import type { ProviderDriver } from 'svc/providers'
import { request } from '../contract/provider.ts'
import type { Heard, ProviderStage, Scenario } from '../contract/provider.ts'
import type { MediaScenario } from '../contract/provider-media.ts'
import { dialects } from './dialects.ts'
import type { DialectName } from './dialects.ts'
import { startFakeProvider } from './fake-provider.ts'
import type { ChatBody } from './fake-provider-rules.ts'
import type { Answer } from './fake-provider.ts'

export const outboundSettings: OutboundSettings = {
  allow: [],
  headersTimeoutMs: 5000,
  idleTimeoutMs: 5000,
  maxBytes: 33_554_432,
  maxRedirects: 5,
}

/** The offline model: what it is to say is in the request. */
export async function openBuiltin(driver: ProviderDriver = builtin): Promise<ProviderStage> {
  return {
    client: driver.connect({
      name: 'builtin',
      config: {},
      baseUrl: '',
      fetch: () => Promise.reject(new Error('no network')),
      apiKey: async () => undefined,
    }),
    play(scenario) {
      if (scenario.kind === 'calls')
        return request(scenario.calls.map(({ name, args }) => `use ${name} ${JSON.stringify(args)}`).join('\n'))
      return request(`echo ${'deltas' in scenario ? scenario.deltas.join('') : ''}`)
    },
    async [Symbol.asyncDispose]() {},
  }
}

/** A driver of OpenAI's wire with a fake provider behind it. */
export async function openCompatible(
  driver: ProviderDriver = openAiCompatible({ ...vendors[0]!, defaultModel: 'fake-1' }),
  dialect: DialectName = 'openai',
  options: object = {},
): Promise<ProviderStage> {
  const fake = await startFakeProvider({ dialect: dialects[dialect] })
  const outbound = createOutbound({ settings: () => outboundSettings })
  return {
    client: driver.connect({
      name: driver.name,
      config: v.parse(driver.config, { ...options, github_api_url: fake.origin }),
      baseUrl: fake.origin + dialects[dialect].base,
      fetch: outbound.forOperator(),
      apiKey: async () => 'test-key',
    }),
    play(scenario) {
      fake.script(answerFor(scenario))
      return request('go on')
    },
    received: () => fake.requests.length,
    heard: () => heardOf(fake.requests.at(-1)?.body ?? {}),
    playMedia(scenario) {
      fake.script(mediaAnswer(scenario))
      return request('go on')
    },
    heardMedia: () => fake.requests.at(-1)?.media,
    lastClosed: () => fake.requests.at(-1)?.closed ?? Promise.reject(new Error('no request')),
    async [Symbol.asyncDispose]() {
      await outbound[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
    },
  }
}

/** The row of one vendor, with a fake that departs from OpenAI as that vendor does. */
export function openVendor(
  name: string,
  dialect: DialectName = 'openai',
  options: object = {},
): Promise<ProviderStage> {
  const vendor = vendors.find((row) => row.name === name)
  if (!vendor) throw new Error(`there is no vendor ${name}`)
  return openCompatible(openAiCompatible({ ...vendor, defaultModel: 'fake-1' }), dialect, options)
}

function answerFor(scenario: Scenario): Answer {
  switch (scenario.kind) {
    case 'text':
      return {
        text: scenario.deltas,
        ...(scenario.thinking && { reasoning: scenario.thinking }),
        ...(scenario.stop && { finish: scenario.stop === 'length' ? 'length' : 'content_filter' }),
        ...(scenario.usage && { usage: USAGE[scenario.usage] }),
      }
    case 'calls':
      return { calls: scenario.calls, argsPiece: 3, ...(scenario.thinking && { reasoning: scenario.thinking }) }
    case 'held':
      return { text: scenario.deltas, fault: 'stall' }
    case 'embed':
      return { vectors: scenario.vectors }
    case 'status':
      return {
        status: scenario.status,
        ...(scenario.headers && { headers: scenario.headers }),
        body: JSON.stringify({
          error:
            scenario.about === 'context_length'
              ? {
                  message: "This model's maximum context length is 8192 tokens.",
                  type: 'invalid_request_error',
                  code: 'context_length_exceeded',
                }
              : scenario.about === 'content_filter'
                ? { message: 'The prompt was filtered.', type: 'invalid_request_error', code: 'content_filter' }
                : { message: 'It failed.', type: 'error', code: null },
        }),
      }
    case 'fault':
      return faulty(scenario)
  }
}
function mediaAnswer(scenario: MediaScenario): Answer {
  switch (scenario.kind) {
    case 'images':
      return { images: scenario.images.map((bytes) => Buffer.from(bytes).toString('base64')) }
    case 'speech':
      return { audio: scenario.audio }
    case 'transcription':
      return { transcript: { text: scenario.text } }
  }
}
function heardOf({ messages = [], tools = [] }: ChatBody): Heard {
  const parts = messages.flatMap(({ role, content }) =>
    role !== 'user' ? [] : typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []),
  )
  const said = messages.flatMap(({ role, content }) =>
    role === 'assistant' && typeof content === 'string' ? [content] : [],
  )
  return {
    system: messages.flatMap(({ role, content }) => (role === 'system' ? [String(content)] : [])).join('\n'),
    texts: [...parts.flatMap(({ type, text }) => (type === 'text' ? [String(text)] : [])), ...said],
    images: parts.flatMap((part) => {
      const [, mime, base64] =
        /^data:([^;]+);base64,(.*)$/.exec(String('image_url' in part ? part.image_url?.url : '')) ?? []
      return mime !== undefined && base64 !== undefined ? [{ mime, base64 }] : []
    }),
    tools: tools.map(({ function: tool }) => String(tool?.name)),
    calls: messages
      .flatMap(({ tool_calls = [] }) => tool_calls)
      .map(({ function: made }) => ({ name: String(made?.name), args: parsed(String(made?.arguments)) })),
    results: messages.flatMap(({ role, content }) => (role === 'tool' ? [String(content)] : [])),
  }
}
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text /* what the model wrote is no JSON */
  }
}
const USAGE = {
  missing: null,
  negative: { prompt_tokens: -5, completion_tokens: 3 },
  absurd: { prompt_tokens: 1e30, completion_tokens: 3 },
  detailed: {
    prompt_tokens: 100,
    completion_tokens: 50,
    prompt_tokens_details: { cached_tokens: 80 },
    completion_tokens_details: { reasoning_tokens: 20 },
  },
} as const
const event = (text: string): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text } }] })}\n\n`
const END = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`

function faulty({ fault, deltas }: Extract<Scenario, { kind: 'fault' }>): Answer {
  switch (fault) {
    case 'cut':
    case 'reset':
    case 'split':
    case 'slow-bytes':
      return { text: deltas, fault }
    case 'overloaded':
      return {
        raw: [
          ...deltas.map(event),
          `data: ${JSON.stringify({ error: { message: 'The engine is overloaded.', type: 'overloaded_error', code: null } })}\n\n`,
        ],
      }
    case 'html':
      return { body: '<!doctype html><title>Sign in</title>', headers: { 'content-type': 'text/html' } }
    case 'empty':
      return { raw: [] }
    case 'malformed-one':
      return { raw: ['data: {"choices": [\n\n', ...deltas.map(event), END] }
    case 'malformed-all':
      return { raw: ['data: {"choices": [\n\n', 'data: 5\n\n', 'data: nonsense\n\n', END] }
    case 'endless-line':
      return { raw: ['data: ', ...Array.from({ length: 10 }, () => 'x'.repeat(1_000_000))] }
  }
}
