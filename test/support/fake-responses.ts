import type { Heard, Scenario } from '../contract/provider.ts'
import { faulty, startVendor } from './vendor-server.ts'
import type { Answering, RecordedCall, VendorServer } from './vendor-server.ts'

interface Content {
  type?: unknown
  text?: unknown
  image_url?: unknown
  detail?: unknown
}
interface Item {
  type?: unknown
  role?: unknown
  content?: Content[]
  call_id?: unknown
  name?: unknown
  arguments?: unknown
  output?: unknown
  id?: unknown
  encrypted_content?: unknown
  summary?: unknown
}
interface Body {
  model?: unknown
  input?: Item[]
  instructions?: unknown
  stream?: unknown
  store?: unknown
  include?: unknown[]
  max_output_tokens?: unknown
  temperature?: unknown
  tools?: { type?: unknown; name?: unknown; parameters?: { type?: unknown; properties?: unknown } }[]
  reasoning?: { effort?: unknown; summary?: unknown }
  text?: { format?: { type?: unknown; name?: unknown; schema?: unknown } }
}
const KNOWN = new Set([
  'model',
  'input',
  'instructions',
  'stream',
  'store',
  'include',
  'max_output_tokens',
  'temperature',
  'tools',
  'tool_choice',
  'reasoning',
  'text',
  'metadata',
  'top_p',
  'parallel_tool_calls',
  'truncation',
  'user',
  'service_tier',
  'prompt_cache_key',
])
const SEAL = 'sealed-by-the-vendor'
const USAGE = {
  negative: { input_tokens: -5, output_tokens: 3 },
  absurd: { input_tokens: 1e30, output_tokens: 3 },
  detailed: {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 80, cache_write_tokens: 0 },
    output_tokens: 50,
    output_tokens_details: { reasoning_tokens: 20 },
    total_tokens: 150,
  },
}
const USUAL = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 15,
}

export interface FakeResponses extends VendorServer {
  play(scenario: Scenario): void
  readonly asked: readonly RecordedCall[]
  heard(): Heard
}

/**
 * OpenAI's Responses API as its reference describes it: what is sealed has to come back as it was given, nothing is
 * stored.
 */
export async function startFakeResponses(key: string): Promise<FakeResponses> {
  const scenarios: Scenario[] = []
  const asked: RecordedCall[] = []

  async function handle(call: RecordedCall, answer: Answering): Promise<void> {
    const { pathname } = call.url
    if (call.headers.authorization !== `Bearer ${key}`)
      return problem(answer, 401, 'Incorrect API key provided', 'invalid_api_key')
    if (pathname === '/v1/models')
      return answer.json(200, {
        object: 'list',
        data: [
          { id: 'gpt-5.3-codex', object: 'model' },
          { id: 'gpt-4.1', object: 'model' },
        ],
      })
    if (pathname !== '/v1/responses' || call.method !== 'POST')
      return problem(answer, 404, `Invalid URL (${call.method} ${pathname})`)
    asked.push(call)
    const wrong = refuse(call.body as Body)
    if (wrong) return problem(answer, 400, wrong)
    const scenario = scenarios.shift()
    if (!scenario) throw new Error('nothing is scripted')
    await give(answer, scenario)
  }

  function give(answer: Answering, scenario: Scenario): Promise<void> | void {
    let number = 0
    const event = (type: string, more: object = {}): string =>
      `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...more })}\n\n`
    const response = (more: object): object => ({
      response: {
        id: 'resp_1',
        object: 'response',
        output: [],
        error: null,
        incomplete_details: null,
        usage: null,
        ...more,
      },
    })
    const start = [
      event('response.created', response({ status: 'in_progress' })),
      event('response.in_progress', response({ status: 'in_progress' })),
    ]
    const end = (usage: object | null | undefined, more: object = {}, type = 'completed'): string[] => [
      event(`response.${type}`, response({ status: type, usage, ...more })),
    ]
    const thinking = (at: number, texts: readonly string[]): string[] =>
      texts.length === 0
        ? []
        : [
            event('response.output_item.added', {
              output_index: at,
              item: { type: 'reasoning', id: `rs_${at}`, summary: [] },
            }),
            event('response.reasoning_summary_part.added', {
              output_index: at,
              summary_index: 0,
              part: { type: 'summary_text', text: '' },
            }),
            ...texts.map((delta) =>
              event('response.reasoning_summary_text.delta', { output_index: at, summary_index: 0, delta }),
            ),
            event('response.output_item.done', {
              output_index: at,
              item: {
                type: 'reasoning',
                id: `rs_${at}`,
                summary: [{ type: 'summary_text', text: texts.join('') }],
                encrypted_content: SEAL,
              },
            }),
          ]
    const open = (at: number, texts: readonly string[], kind = 'output_text'): string[] => [
      event('response.output_item.added', {
        output_index: at,
        item: { type: 'message', id: `msg_${at}`, role: 'assistant', status: 'in_progress', content: [] },
      }),
      event('response.content_part.added', {
        output_index: at,
        content_index: 0,
        part: { type: 'output_text', text: '', annotations: [] },
      }),
      ...texts.map((delta) => event(`response.${kind}.delta`, { output_index: at, content_index: 0, delta })),
    ]
    const message = (at: number, texts: readonly string[]): string[] => [
      ...open(at, texts),
      event('response.output_text.done', { output_index: at, content_index: 0, text: texts.join('') }),
      event('response.output_item.done', {
        output_index: at,
        item: {
          type: 'message',
          id: `msg_${at}`,
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: texts.join(''), annotations: [] }],
        },
      }),
    ]
    const stream = (pieces: readonly string[], line?: 'held'): Promise<void> =>
      answer.stream('text/event-stream; charset=utf-8', pieces, line)
    switch (scenario.kind) {
      case 'text': {
        const usage = scenario.usage === undefined ? USUAL : scenario.usage === 'missing' ? null : USAGE[scenario.usage]
        const last =
          scenario.stop === undefined
            ? end(usage)
            : end(
                usage,
                { incomplete_details: { reason: scenario.stop === 'length' ? 'max_output_tokens' : 'content_filter' } },
                'incomplete',
              )
        return stream([...start, ...thinking(0, scenario.thinking ?? []), ...message(1, scenario.deltas), ...last])
      }
      case 'calls':
        return stream([
          ...start,
          ...thinking(0, scenario.thinking ?? []),
          ...message(1, ['I ', 'look.']),
          ...scenario.calls.flatMap(({ name, args }, index) => {
            const at = index + 2
            const call = { type: 'function_call', id: `fc_${at}`, call_id: `call_${index}x`, name }
            return [
              event('response.output_item.added', {
                output_index: at,
                item: { ...call, arguments: '', status: 'in_progress' },
              }),
              ...(JSON.stringify(args).match(/[^]{1,3}/g) ?? []).map((delta) =>
                event('response.function_call_arguments.delta', { output_index: at, item_id: call.id, delta }),
              ),
              event('response.function_call_arguments.done', {
                output_index: at,
                item_id: call.id,
                name,
                arguments: JSON.stringify(args),
              }),
              event('response.output_item.done', {
                output_index: at,
                item: { ...call, arguments: JSON.stringify(args), status: 'completed' },
              }),
            ]
          }),
          ...end(USUAL),
        ])
      case 'held':
        return stream([...start, ...open(0, scenario.deltas)], 'held')
      case 'embed':
        throw new Error('this driver does not embed')
      case 'status':
        return problem(
          answer,
          scenario.status,
          scenario.about === 'context_length'
            ? 'Your input exceeds the context window of this model.'
            : scenario.about === 'content_filter'
              ? 'Your prompt was flagged by our safety system.'
              : 'It failed.',
          scenario.about === 'context_length'
            ? 'context_length_exceeded'
            : scenario.about === 'content_filter'
              ? 'invalid_prompt'
              : null,
          scenario.headers,
        )
      case 'fault':
        return faulty(answer, scenario.fault, {
          said: [...start, ...open(0, scenario.deltas)],
          end: end(USUAL),
          overloaded: [
            event('error', {
              code: 'server_is_overloaded',
              message: 'Our servers are currently overloaded. Please try again later.',
              param: null,
            }),
          ],
        })
    }
  }

  const server = await startVendor(handle)
  return Object.assign(server, {
    play: (scenario: Scenario) => {
      scenarios.push(scenario)
    },
    asked,
    heard: () => heardOf(asked.at(-1)?.body as Body),
  })
}

function problem(
  answer: Answering,
  status: number,
  message: string,
  code: string | null = null,
  headers: Readonly<Record<string, string>> = {},
): void {
  answer.json(
    status,
    { error: { message, type: status >= 500 ? 'server_error' : 'invalid_request_error', param: null, code } },
    headers,
  )
}

function refuse(body: Body): string | undefined {
  const field = Object.keys(body).find((name) => !KNOWN.has(name))
  if (field !== undefined) return `Unknown parameter: '${field}'.`
  if (
    body.stream !== true ||
    body.store !== false ||
    typeof body.model !== 'string' ||
    !Array.isArray(body.input) ||
    body.input.length === 0
  )
    return "Missing required parameter: 'input'."
  const thinks = /^(?:o[1-9]|gpt-[5-9])/.test(body.model)
  if (thinks && body.temperature !== undefined)
    return "Unsupported parameter: 'temperature' is not supported with this model."
  if (!thinks && (body.reasoning || body.include)) return 'Encrypted content is not supported with this model.'
  if (body.max_output_tokens !== undefined && !(Number(body.max_output_tokens) >= 16))
    return "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
  const { format } = body.text ?? {}
  if (format?.type === 'json_schema' && (typeof format.name !== 'string' || typeof format.schema !== 'object'))
    return "Missing required parameter: 'text.format.name'."
  const names = new Set<unknown>()
  for (const { type, name, parameters } of body.tools ?? []) {
    if (
      type !== 'function' ||
      !/^[\w-]{1,64}$/.test(String(name)) ||
      parameters?.type !== 'object' ||
      typeof parameters.properties !== 'object' ||
      names.has(name)
    )
      return "Invalid value: 'tools'."
    names.add(name)
  }
  const open = new Set<unknown>()
  for (const [at, item] of body.input.entries()) {
    if (item.type === 'function_call_output') {
      if (!open.delete(item.call_id) || typeof item.output !== 'string')
        return `No tool call found for function call output with call_id ${String(item.call_id)}.`
      continue
    }
    if (item.type === 'function_call') {
      if (typeof item.call_id !== 'string' || typeof item.name !== 'string' || typeof item.arguments !== 'string')
        return `Missing required parameter: 'input[${at}].arguments'.`
      open.add(item.call_id)
      continue
    }
    if (item.type === 'reasoning') {
      const next = body.input[at + 1]
      if (item.encrypted_content !== SEAL || typeof item.id !== 'string' || !Array.isArray(item.summary))
        return 'The encrypted content could not be verified.'
      if (next?.type !== 'function_call' && next?.role !== 'assistant')
        return `Item '${item.id}' of type 'reasoning' was provided without its required following item.`
      continue
    }
    if (open.size > 0) return `No tool output found for function call ${String([...open][0])}.`
    if (item.role !== 'user' && item.role !== 'assistant') return `Invalid value: 'input[${at}].role'.`
    if (!Array.isArray(item.content) || item.content.length === 0)
      return `Missing required parameter: 'input[${at}].content'.`
    for (const part of item.content) {
      const isImage = part.type === 'input_image'
      if (
        isImage
          ? item.role !== 'user' ||
            !/^data:image\/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+={0,2}$/.test(String(part.image_url))
          : part.type !== (item.role === 'user' ? 'input_text' : 'output_text') || typeof part.text !== 'string'
      )
        return `Invalid value: 'input[${at}].content'.`
    }
  }
  return open.size > 0 ? `No tool output found for function call ${String([...open][0])}.` : undefined
}

function heardOf({ instructions, input = [], tools = [] }: Body): Heard {
  const parts = input.flatMap(({ content = [] }) => content)
  return {
    system: String(instructions ?? ''),
    texts: parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])),
    images: parts.flatMap(({ image_url: url }) => {
      const [, mime, base64] = /^data:([^;]+);base64,(.*)$/.exec(String(url)) ?? []
      return mime && base64 ? [{ mime, base64 }] : []
    }),
    tools: tools.map(({ name }) => String(name)),
    calls: input
      .filter(({ type }) => type === 'function_call')
      .map(({ name, arguments: args }) => ({ name: String(name), args: parsed(String(args)) })),
    results: input.filter(({ type }) => type === 'function_call_output').map(({ output }) => String(output)),
  }
}
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text /* what the model wrote is no JSON */
  }
}
