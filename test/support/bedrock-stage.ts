import { crc32 } from 'node:zlib'
import { bedrock } from '../../adapters/providers/bedrock/index.ts'
import { createOutbound } from '../../core/net/outbound.ts'
import { parse } from 'svc/sdk'
import { request } from '../contract/provider.ts'
import type { Heard, ProviderStage, Scenario } from '../contract/provider.ts'
import { frame, ID, REGION, SECRET, startFakeBedrock } from './fake-bedrock.ts'
import type { BedrockAnswer } from './fake-bedrock.ts'
import { outboundSettings } from './provider-stage.ts'
import type { Json } from './json.ts'

/** The driver of the Converse API with a fake of Bedrock behind it. */
export async function openBedrock(
  model = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  key = ID,
): Promise<ProviderStage> {
  const fake = await startFakeBedrock()
  const outbound = createOutbound({ settings: () => outboundSettings })
  const config = parse(bedrock.config, { region: REGION, secret_access_key: SECRET })
  return {
    client: bedrock.connect({
      name: 'bedrock',
      config,
      baseUrl: fake.origin,
      fetch: outbound.forOperator(),
      apiKey: async () => key,
    }),
    play(scenario) {
      fake.script(answerFor(scenario))
      return { ...request('go on'), model }
    },
    received: () => fake.calls.length,
    heard: () => heardOf(fake.asked.at(-1) ?? {}),
    // It does not say how much of its output was thinking.
    detailed: { input: 100, output: 50, cachedInput: 80, cacheWrite: 5 },
    lastClosed: () => fake.calls.at(-1)?.closed ?? Promise.reject(new Error('no request')),
    async [Symbol.asyncDispose]() {
      await outbound[Symbol.asyncDispose]()
      await fake[Symbol.asyncDispose]()
    },
  }
}

function answerFor(scenario: Scenario): BedrockAnswer {
  switch (scenario.kind) {
    case 'text':
      return {
        text: scenario.deltas,
        ...(scenario.thinking && { thinking: scenario.thinking }),
        ...(scenario.stop && { stop: scenario.stop === 'length' ? 'max_tokens' : 'guardrail_intervened' }),
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
          ? 'Input is too long for requested model.'
          : scenario.about === 'content_filter'
            ? 'The request was blocked by our content filter.'
            : undefined
      return {
        status: scenario.status,
        ...(scenario.headers && { headers: scenario.headers }),
        ...(message !== undefined && { body: JSON.stringify({ message }) }),
      }
    }
    case 'fault':
      return faulty(scenario)
  }
}
const USAGE = {
  missing: null,
  negative: { inputTokens: -5, outputTokens: 3 },
  absurd: { inputTokens: 1e30, outputTokens: 3 },
  detailed: { inputTokens: 15, outputTokens: 50, cacheReadInputTokens: 80, cacheWriteInputTokens: 5 },
} as const
const text = (delta: string): Uint8Array => frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: delta } })
const START = frame('messageStart', { role: 'assistant' })
const END = [
  frame('messageStop', { stopReason: 'end_turn' }),
  frame('metadata', { usage: { inputTokens: 1, outputTokens: 2 } }),
]

function faulty({ fault, deltas }: Extract<Scenario, { kind: 'fault' }>): BedrockAnswer {
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
          frame('serviceUnavailableException', { message: 'Bedrock is unable to process your request.' }, 'exception'),
        ],
      }
    case 'html':
      return { status: 200, body: '<!doctype html><title>Sign in</title>', headers: { 'content-type': 'text/html' } }
    case 'empty':
      return { raw: [] }
    case 'malformed-one':
      return { raw: [START, frame('contentBlockDelta', '{"contentBlockIndex": ['), ...deltas.map(text), ...END] }
    case 'malformed-all':
      return {
        raw: [
          frame('messageStart', '5 6'),
          frame('contentBlockDelta', '5'),
          frame('contentBlockDelta', 'nonsense'),
          frame('messageStop', '[]'),
          ...END,
        ],
      }
    // A frame that says it is of 256 MB, with a right checksum.
    case 'endless-line':
      return { raw: [endless(), ...Array.from({ length: 10 }, () => Buffer.alloc(1_000_000, 'x'))] }
  }
}
function endless(): Uint8Array {
  const bytes = Buffer.alloc(12)
  bytes.writeUInt32BE(0x1000_0000, 0)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8)
  return bytes
}

function heardOf({ system = [], messages = [], toolConfig }: Readonly<Record<string, Json>>): Heard {
  const blocks: readonly Readonly<Record<string, Json>>[] = messages.flatMap(
    ({ content }: { content: unknown }) => content,
  )
  const of = (type: string) => blocks.flatMap((block) => (block[type] === undefined ? [] : [block[type]]))
  return {
    system: system.flatMap((block: { text?: string }) => block.text ?? []).join('\n'),
    texts: of('text'),
    images: of('image').map(({ format, source }) => ({ mime: `image/${format}`, base64: source.bytes })),
    tools: (toolConfig?.tools ?? []).flatMap((tool: { toolSpec?: { name: string } }) => tool.toolSpec?.name ?? []),
    calls: of('toolUse').map(({ name, input }) => ({ name, args: input })),
    results: of('toolResult').map(({ content }) => content[0].text),
  }
}
