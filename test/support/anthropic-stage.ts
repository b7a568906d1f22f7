import { anthropic } from '../../adapters/providers/anthropic/index.ts'
import { createOutbound } from '../../core/net/outbound.ts'
import { parse } from 'svc/sdk'
import type { ProviderDriver } from 'svc/providers'
import { request } from '../contract/provider.ts'
import type { Heard, ProviderStage, Scenario } from '../contract/provider.ts'
import { event, startFakeAnthropic } from './fake-anthropic.ts'
import type { AnthropicAnswer } from './fake-anthropic.ts'
import { outboundSettings } from './provider-stage.ts'
import type { Json } from './json.ts'

/** The driver of the Messages API with a fake of the vendor behind it. */
export async function openAnthropic(
  model = 'claude-sonnet-4-5-20250929',
  driver: ProviderDriver = anthropic,
): Promise<ProviderStage> {
  const fake = await startFakeAnthropic()
  const outbound = createOutbound({ settings: () => outboundSettings })
  return {
    client: driver.connect({
      name: 'anthropic',
      config: parse(anthropic.config, {}),
      baseUrl: fake.origin,
      fetch: outbound.forOperator(),
      apiKey: async () => 'test-key',
    }),
    play(scenario) {
      fake.script(answerFor(scenario))
      return { ...request('go on'), model }
    },
    received: () => fake.calls.length,
    heard: () => heardOf(fake.asked.at(-1) ?? {}),
    detailed: { input: 100, output: 50, cachedInput: 80, cacheWrite: 5, thinking: 20 },
    lastClosed: () => fake.calls.at(-1)?.closed ?? Promise.reject(new Error('no request')),
    async [Symbol.asyncDispose]() {
      await outbound[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
    },
  }
}

function answerFor(scenario: Scenario): AnthropicAnswer {
  switch (scenario.kind) {
    case 'text':
      return {
        text: scenario.deltas,
        ...(scenario.thinking && { thinking: scenario.thinking }),
        ...(scenario.stop && { stop: scenario.stop === 'length' ? 'max_tokens' : 'refusal' }),
        ...(scenario.usage && { usage: USAGE[scenario.usage] }),
      }
    case 'calls':
      return {
        calls: scenario.calls,
        ...(scenario.thinking && { thinking: scenario.thinking, redacted: 'secret', text: ['I ', 'look.'] }),
      }
    case 'held':
      return { text: scenario.deltas, fault: 'held' }
    case 'embed':
      throw new Error('this driver does not embed')
    case 'status': {
      const message =
        scenario.about === 'context_length'
          ? 'prompt is too long: 250000 tokens > 200000 maximum'
          : scenario.about === 'content_filter'
            ? 'Output blocked by content filtering policy'
            : undefined
      return {
        status: scenario.status,
        ...(scenario.headers && { headers: scenario.headers }),
        ...(message !== undefined && {
          body: JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }),
        }),
      }
    }
    case 'fault':
      return faulty(scenario)
  }
}
const USAGE = {
  missing: null,
  negative: { input_tokens: -5, output_tokens: 3 },
  absurd: { input_tokens: 1e30, output_tokens: 3 },
  detailed: {
    input_tokens: 15,
    cache_creation_input_tokens: 5,
    cache_read_input_tokens: 80,
    output_tokens: 50,
    output_tokens_details: { thinking_tokens: 20 },
  },
} as const
const START =
  event({ type: 'message_start', message: { id: 'm', content: [], usage: { input_tokens: 10, output_tokens: 1 } } } as {
    type: string
  }) + event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } } as { type: string })
const text = (delta: string): string =>
  event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: delta } } as { type: string })
const END =
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } } as {
    type: string
  }) + event({ type: 'message_stop' })

function faulty({ fault, deltas }: Extract<Scenario, { kind: 'fault' }>): AnthropicAnswer {
  switch (fault) {
    case 'cut':
    case 'reset':
    case 'split':
    case 'slow-bytes':
      return { text: deltas, fault }
    case 'overloaded':
      return {
        raw: [
          START,
          ...deltas.map(text),
          event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } as { type: string }),
        ],
      }
    case 'html':
      return { status: 200, body: '<!doctype html><title>Sign in</title>', headers: { 'content-type': 'text/html' } }
    case 'empty':
      return { raw: [] }
    case 'malformed-one':
      return { raw: [START, 'event: content_block_delta\ndata: {"type": [\n\n', ...deltas.map(text), END] }
    case 'malformed-all':
      return { raw: ['data: {"type": [\n\n', 'data: 5\n\n', 'data: nonsense\n\n', END] }
    case 'endless-line':
      return { raw: ['data: ', ...Array.from({ length: 10 }, () => 'x'.repeat(1_000_000))] }
  }
}

function heardOf({ system, messages = [], tools = [] }: Readonly<Record<string, Json>>): Heard {
  const blocks: readonly Readonly<Record<string, Json>>[] = messages.flatMap(
    ({ content }: { content: unknown }) => content,
  )
  const of = (type: string) => blocks.filter((block) => block['type'] === type)
  return {
    system:
      typeof system === 'string' ? system : (system ?? []).map((block: { text: string }) => block.text).join('\n'),
    texts: of('text').map((block) => block['text']),
    images: of('image').map(({ source }) => ({ mime: source.media_type, base64: source.data })),
    tools: tools.map(({ name }: { name: string }) => name),
    calls: of('tool_use').map(({ name, input }) => ({ name, args: input })),
    results: of('tool_result').map(({ content }) => content),
  }
}
