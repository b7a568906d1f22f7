import type { Scenario } from '../contract/provider.ts'
import { faulty, startVendor } from './vendor-server.ts'
import type { Answering, RecordedCall, VendorServer } from './vendor-server.ts'

interface Made {
  readonly scenario: Scenario
  status: string
  readonly streams: boolean
}
const USAGE = {
  negative: { input_token_count: -5, output_token_count: 3 },
  absurd: { input_token_count: 1e30, output_token_count: 3 },
  detailed: { input_token_count: 100, output_token_count: 50 },
}
/** Lines of the data are lines of the event. */
const event = (kind: string, data: string): string =>
  `event: ${kind}\nid: 1:0\n${data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join('')}\n`

export interface FakeReplicate extends VendorServer {
  play(scenario: Scenario): void
  readonly creations: readonly RecordedCall[]
  readonly streams: readonly RecordedCall[]
  readonly cancelled: readonly string[]
}

/**
 * Replicate's API for predictions as its reference describes it: one is made, then read from a stream or asked for
 * until it is over.
 */
export async function startFakeReplicate(
  key: string,
  { streams: isStreaming = true, polls = 2 }: { readonly streams?: boolean; readonly polls?: number } = {},
): Promise<FakeReplicate> {
  const scenarios: Scenario[] = []
  const creations: RecordedCall[] = []
  const streams: RecordedCall[] = []
  const cancelled: string[] = []
  const made = new Map<string, Made & { asked: number }>()

  async function handle(call: RecordedCall, answer: Answering): Promise<void> {
    const { pathname } = call.url
    const [, stream = ''] = /^\/stream\/(\w+)$/.exec(pathname) ?? []
    if (stream) {
      streams.push(call)
      return give(answer, made.get(stream))
    }
    if (call.headers.authorization !== `Bearer ${key}`)
      return answer.json(401, {
        title: 'Unauthenticated',
        detail: 'You did not pass a valid authentication token',
        status: 401,
      })
    if (pathname === '/v1/account') return answer.json(200, { type: 'user', username: 'x' })
    if (pathname === '/v1/collections/language-models')
      return answer.json(200, {
        name: 'Language models',
        slug: 'language-models',
        models: [
          { owner: 'meta', name: 'meta-llama-3-70b-instruct' },
          { owner: 'anthropic', name: 'claude-4.5-haiku' },
        ],
      })
    const [, id = '', verb] = /^\/v1\/predictions\/(\w+)(?:\/(cancel))?$/.exec(pathname) ?? []
    if (verb) {
      cancelled.push(id)
      return answer.json(200, prediction(id))
    }
    if (id) return answer.json(200, prediction(id))
    if (call.method !== 'POST' || !/^\/v1\/(?:models\/[\w.-]+\/[\w.-]+\/predictions|predictions)$/.test(pathname))
      return answer.json(404, { detail: 'The requested resource could not be found.', status: 404 })
    creations.push(call)
    const { input, version, ...rest } = call.body as {
      input?: { prompt?: unknown; max_tokens?: unknown }
      version?: unknown
      stream?: unknown
    }
    if (
      !input ||
      typeof input.prompt !== 'string' ||
      input.prompt === '' ||
      (pathname === '/v1/predictions') !== (typeof version === 'string')
    )
      return answer.json(422, {
        title: 'Input validation failed',
        detail: '- input: prompt is required',
        status: 422,
        invalid_fields: [],
      })
    if (Object.keys(rest).some((name) => name !== 'stream'))
      return answer.json(422, { detail: 'Additional property is not allowed', status: 422 })
    const scenario = scenarios.shift()
    if (!scenario) throw new Error('nothing is scripted')
    if (scenario.kind === 'status' && !scenario.about)
      return answer.json(
        scenario.status,
        { title: 'Failed', detail: 'It failed.', status: scenario.status },
        scenario.headers,
      )
    if (scenario.kind === 'fault' && scenario.fault === 'html')
      return answer.text(200, '<!doctype html><title>Sign in</title>', 'text/html')
    const name = `p${made.size}`
    made.set(name, { scenario, status: 'starting', streams: isStreaming, asked: 0 })
    answer.json(201, prediction(name))
  }

  function prediction(id: string): object {
    const one = made.get(id)
    if (!one) return { detail: 'not found' }
    if (!one.streams && one.asked++ >= polls) one.status = one.scenario.kind === 'status' ? 'failed' : 'succeeded'
    const { scenario } = one
    const over = one.status === 'succeeded'
    const usage =
      scenario.kind === 'text' && scenario.usage !== undefined
        ? scenario.usage === 'missing'
          ? undefined
          : USAGE[scenario.usage]
        : { input_token_count: 10, output_token_count: scenario.kind === 'text' && scenario.stop === 'length' ? 4 : 3 }
    return {
      id,
      model: 'x/y',
      version: 'v',
      input: {},
      status: one.status,
      created_at: '2026-11-01T00:00:00Z',
      error: one.status === 'failed' ? troubleOf(scenario) : null,
      output: over && !one.streams && 'deltas' in scenario ? scenario.deltas : null,
      ...(over && usage && { metrics: { ...usage, predict_time: 0.5 } }),
      urls: {
        get: `${server.origin}/v1/predictions/${id}`,
        cancel: `${server.origin}/v1/predictions/${id}/cancel`,
        ...(one.streams && { stream: `${server.origin}/stream/${id}` }),
      },
    }
  }

  async function give(answer: Answering, one: Made | undefined): Promise<void> {
    if (!one) return answer.json(404, { detail: 'not found' })
    const { scenario } = one
    const said = 'deltas' in scenario ? scenario.deltas.map((text) => event('output', text)) : []
    const end = [event('done', '{}')]
    one.status = 'succeeded'
    if (scenario.kind === 'held') return answer.stream('text/event-stream', said, 'held')
    if (scenario.kind === 'fault')
      return faulty(answer, scenario.fault, {
        said,
        end,
        overloaded: [
          event(
            'error',
            JSON.stringify({
              detail: 'Service is temporarily unavailable due to high demand. Please try again later. (E003)',
            }),
          ),
          event('done', JSON.stringify({ reason: 'error' })),
        ],
      })
    if (scenario.kind === 'status')
      return answer.stream('text/event-stream', [
        event('error', JSON.stringify({ detail: troubleOf(scenario) })),
        event('done', JSON.stringify({ reason: 'error' })),
      ])
    return answer.stream('text/event-stream', [event('logs', 'loading'), ...said, ...end])
  }

  const server = await startVendor(handle)
  return Object.assign(server, {
    play: (scenario: Scenario) => {
      scenarios.push(scenario)
    },
    creations,
    streams,
    cancelled,
  })
}

function troubleOf(scenario: Scenario): string {
  return scenario.kind === 'status' && scenario.about === 'content_filter'
    ? 'The input or output was flagged as sensitive. Please try again with different inputs. (E005)'
    : 'Prompt length exceeds maximum input length of 8191 tokens'
}
