import { models, refuse, sign } from './fake-anthropic-rules.ts'
import { startVendor } from './vendor-server.ts'
import type { Answering, Line, RecordedCall, VendorServer } from './vendor-server.ts'
import type { Json } from './json.ts'

export interface AnthropicAnswer {
  readonly text?: readonly string[]
  /** One block of thinking. */
  readonly thinking?: readonly string[]
  /** Thinking that is not shown, before everything else. */
  readonly redacted?: string
  /** Said between the thinking and the calls, and thought once more after it. */
  readonly calls?: readonly { readonly name: string; readonly args?: unknown; readonly id?: string }[]
  readonly stop?: string
  /** `null` leaves the counts out. */
  readonly usage?: Readonly<Record<string, unknown>> | null
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Sent as they are, instead of anything made from the fields above. */
  readonly raw?: readonly string[]
  readonly fault?: Line | 'cut'
}
export interface FakeAnthropic extends VendorServer {
  /** The answers of the next requests for one, in order. After them `Hello.` is said. */
  script(...answers: readonly AnthropicAnswer[]): void
  /** The bodies of the requests for an answer. */
  readonly asked: readonly Readonly<Record<string, Json>>[]
}

const problem = (type: string, message: string): object => ({
  type: 'error',
  error: { type, message },
  request_id: 'req_fake',
})
export const event = (data: { readonly type: string }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

/**
 * A real HTTP server that speaks the Messages API and refuses what Anthropic refuses. Source:
 * https://platform.claude.com/docs/en/api/messages
 */
export async function startFakeAnthropic(key = 'test-key'): Promise<FakeAnthropic> {
  const scripted: AnthropicAnswer[] = []
  const asked: Readonly<Record<string, Json>>[] = []
  let answers = 0

  function handle(
    { method, url: { pathname, searchParams }, headers, text, body }: RecordedCall,
    answer: Answering,
  ): Promise<void> | void {
    const refuseWith = (status: number, type: string, message: string): void =>
      answer.json(status, problem(type, message))
    // Its newer clients send the key as a bearer token.
    const given = headers['x-api-key'] ?? headers.authorization?.replace(/^Bearer /, '')
    if (given === undefined) return refuseWith(401, 'authentication_error', 'x-api-key header is required')
    if (given !== key) return refuseWith(401, 'authentication_error', 'invalid x-api-key')
    if (headers['anthropic-version'] === undefined)
      return refuseWith(400, 'invalid_request_error', 'anthropic-version: header is required')
    const newer = headers['anthropic-version'] === '2026-10-21'
    if (!newer && headers['anthropic-version'] !== '2023-06-01')
      return refuseWith(
        400,
        'invalid_request_error',
        `anthropic-version: "${headers['anthropic-version']}" is not a valid version`,
      )
    if (method === 'GET' && pathname === '/v1/models') return answer.json(200, listed(searchParams))
    if (method !== 'POST' || pathname !== '/v1/messages')
      return refuseWith(404, 'not_found_error', `Not found: ${pathname}`)
    if (!String(headers['content-type']).startsWith('application/json'))
      return refuseWith(400, 'invalid_request_error', 'content-type: must be application/json')
    if (typeof body !== 'object' || body === null)
      return refuseWith(400, 'invalid_request_error', 'The request body is not valid JSON')
    const json: Readonly<Record<string, Json>> = body
    asked.push(json)
    if (typeof json['model'] === 'string' && !models[json['model']])
      return refuseWith(404, 'not_found_error', `model: ${json['model']}`)
    const gone = newer ? ['temperature', 'top_p', 'top_k'].find((field) => json[field] !== undefined) : undefined
    const refusal = gone === undefined ? refuse(json, text) : `${gone}: Extra inputs are not permitted`
    if (refusal !== undefined) return refuseWith(400, 'invalid_request_error', refusal)
    const next = scripted.shift() ?? { text: ['Hello.'] }
    if (next.status !== undefined || next.body !== undefined) {
      return answer.raw(
        next.status ?? 200,
        { 'content-type': 'application/json', ...next.headers },
        next.body ?? JSON.stringify(problem(kinds[next.status ?? 0] ?? 'api_error', `status ${next.status}`)),
      )
    }
    if (json['stream'] !== true) return answer.json(200, whole(json, next, `msg_fake_${answers++}`))
    return answer.stream(
      'text/event-stream; charset=utf-8',
      next.raw ?? [...stream(json, next, `msg_fake_${answers++}`)],
      next.fault === 'cut' ? 'whole' : next.fault,
    )
  }

  const vendor = await startVendor(handle)
  return Object.assign(vendor, {
    asked,
    script: (...next: readonly AnthropicAnswer[]) => {
      scripted.push(...next)
    },
  })
}

const kinds: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/** Two to a page, whatever is asked for, so that who reads only the first one is found out. */
function listed(query: URLSearchParams): object {
  const ids = Object.keys(models)
  const from = ids.indexOf(query.get('after_id') ?? '') + 1
  const page = ids.slice(from, from + 2)
  const data = page.map((id) => ({ type: 'model', id, display_name: id, created_at: '2026-01-01T00:00:00Z' }))
  return { data, has_more: from + 2 < ids.length, first_id: page[0] ?? null, last_id: page.at(-1) ?? null }
}

function blocksOf(
  body: Readonly<Record<string, Json>>,
  answer: AnthropicAnswer,
  id: string,
): readonly Readonly<Record<string, Json>>[] {
  const thinks = body['thinking']?.type === 'enabled' || body['thinking']?.type === 'adaptive'
  const shown = body['thinking']?.display !== 'omitted'
  const thought = (parts: readonly string[]) => ({
    type: 'thinking',
    thinking: shown ? parts.join('') : '',
    signature: sign(shown ? parts.join('') : ''),
    parts: shown ? parts : [],
  })
  return [
    ...(thinks && answer.redacted !== undefined
      ? [{ type: 'redacted_thinking', data: `redacted:${answer.redacted}` }]
      : []),
    ...(thinks && answer.thinking ? [thought(answer.thinking)] : []),
    ...(answer.text ? [{ type: 'text', text: answer.text.join(''), parts: answer.text }] : []),
    // Newer models think again between what they say and what they do.
    ...(thinks && answer.thinking && answer.calls && answer.text ? [thought(['and ', 'then'])] : []),
    ...(answer.calls ?? []).map(({ name, args, id: given }, index) => ({
      type: 'tool_use',
      id: given ?? `toolu_${id}_${index}`,
      name,
      input: args ?? {},
    })),
  ]
}
const usageOf = ({ usage }: AnthropicAnswer) =>
  usage ?? { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 20 }
const stopOf = ({ stop, calls }: AnthropicAnswer): string =>
  stop ?? (calls && calls.length > 0 ? 'tool_use' : 'end_turn')

function whole(body: Readonly<Record<string, Json>>, answer: AnthropicAnswer, id: string): object {
  return {
    id,
    type: 'message',
    role: 'assistant',
    model: body['model'],
    content: blocksOf(body, answer, id).map((block) =>
      Object.fromEntries(Object.entries(block).filter(([name]) => name !== 'parts')),
    ),
    stop_reason: stopOf(answer),
    stop_sequence: null,
    ...(answer.usage !== null && { usage: usageOf(answer) }),
  }
}

function* stream(body: Readonly<Record<string, Json>>, answer: AnthropicAnswer, id: string): Generator<string> {
  const usage = answer.usage === null ? {} : { ...usageOf(answer) }
  const head = {
    id,
    type: 'message',
    role: 'assistant',
    model: body['model'],
    content: [],
    stop_reason: null,
    stop_sequence: null,
  }
  yield event({
    type: 'message_start',
    message: { ...head, ...(answer.usage !== null && { usage: { ...usage, output_tokens: 1 } }) },
  } as { type: string })
  yield event({ type: 'ping' })
  for (const [index, block] of blocksOf(body, answer, id).entries()) {
    const delta = (content: object): string =>
      event({ type: 'content_block_delta', index, delta: content } as { type: string })
    const { parts, ...start } = block
    const empty =
      start['type'] === 'text'
        ? { text: '' }
        : start['type'] === 'thinking'
          ? { thinking: '', signature: '' }
          : start['type'] === 'tool_use'
            ? { input: {} }
            : {}
    yield event({ type: 'content_block_start', index, content_block: { ...start, ...empty } } as { type: string })
    if (start['type'] === 'text') for (const text of parts) yield delta({ type: 'text_delta', text })
    if (start['type'] === 'thinking') {
      for (const thinking of parts) yield delta({ type: 'thinking_delta', thinking })
      yield delta({ type: 'signature_delta', signature: start['signature'] })
    }
    if (start['type'] === 'tool_use') {
      const json = JSON.stringify(start['input'])
      yield delta({ type: 'input_json_delta', partial_json: '' })
      if (json !== '{}')
        for (let at = 0; at < json.length; at += 3)
          yield delta({ type: 'input_json_delta', partial_json: json.slice(at, at + 3) })
    }
    if (answer.fault !== undefined && answer.fault !== 'split' && answer.fault !== 'slow-bytes') return
    yield event({ type: 'content_block_stop', index } as { type: string })
  }
  yield event({
    type: 'message_delta',
    delta: { stop_reason: stopOf(answer), stop_sequence: null },
    ...(answer.usage !== null && { usage }),
  } as { type: string })
  yield event({ type: 'message_stop' })
}
