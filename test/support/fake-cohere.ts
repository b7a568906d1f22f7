import type { Heard, Scenario } from '../contract/provider.ts'
import { faulty, startVendor } from './vendor-server.ts'
import type { Answering, RecordedCall, VendorServer } from './vendor-server.ts'

interface Block {
  type?: unknown
  text?: unknown
  thinking?: unknown
  image_url?: { url?: unknown }
}
interface Message {
  role?: unknown
  content?: string | Block[]
  tool_calls?: { id?: unknown; type?: unknown; function?: { name?: unknown; arguments?: unknown } }[]
  tool_call_id?: unknown
  tool_plan?: unknown
}
interface Body {
  model?: unknown
  messages?: Message[]
  stream?: unknown
  tools?: { type?: unknown; function?: { name?: unknown; parameters?: { type?: unknown } } }[]
  max_tokens?: unknown
  temperature?: unknown
  response_format?: unknown
  thinking?: { type?: unknown }
}
const KNOWN = new Set([
  'model',
  'messages',
  'stream',
  'tools',
  'strict_tools',
  'documents',
  'citation_options',
  'response_format',
  'safety_mode',
  'max_tokens',
  'stop_sequences',
  'temperature',
  'seed',
  'frequency_penalty',
  'presence_penalty',
  'k',
  'p',
  'logprobs',
  'tool_choice',
  'thinking',
  'priority',
])
const USAGE = {
  negative: { billed_units: { input_tokens: -5, output_tokens: 3 } },
  absurd: { billed_units: { input_tokens: 1e30, output_tokens: 3 } },
  detailed: {
    billed_units: { input_tokens: 100, output_tokens: 50 },
    tokens: { input_tokens: 594, output_tokens: 52 },
    cached_tokens: 80,
  },
}
const event = (type: string, more: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`

export interface FakeCohere extends VendorServer {
  play(scenario: Scenario): void
  readonly completions: readonly RecordedCall[]
  heard(): Heard
}

/** Cohere's API, version 2, as its reference describes it. */
export async function startFakeCohere(key: string): Promise<FakeCohere> {
  const scenarios: Scenario[] = []
  const completions: RecordedCall[] = []

  async function handle(call: RecordedCall, answer: Answering): Promise<void> {
    const { pathname, searchParams } = call.url
    if (call.headers.authorization !== `Bearer ${key}`)
      return answer.json(401, { id: '1', message: 'invalid api token' })
    if (pathname === '/v1/models' && searchParams.get('endpoint') === 'chat')
      return answer.json(
        200,
        searchParams.has('page_token')
          ? { models: [{ name: 'command-r7b-12-2024', endpoints: ['chat'] }] }
          : { models: [{ name: 'command-a-03-2025', endpoints: ['chat'] }], next_page_token: 'more' },
      )
    if (pathname === '/v2/embed') return embed(call, answer)
    if (pathname !== '/v2/chat' || call.method !== 'POST') return answer.json(404, { message: 'not found' })
    completions.push(call)
    const wrong = refuse(call.body as Body)
    if (wrong) return answer.json(400, { id: '1', message: wrong })
    const scenario = scenarios.shift()
    if (!scenario) throw new Error('nothing is scripted')
    await give(answer, scenario)
  }

  function embed(call: RecordedCall, answer: Answering): void {
    const scenario = scenarios.shift()
    if (scenario?.kind === 'status') return answer.json(scenario.status, { message: 'It failed.' })
    const {
      texts,
      input_type: kind,
      embedding_types: types,
      model,
    } = call.body as { texts: unknown[]; input_type?: string; embedding_types?: string[]; model?: string }
    if (!Array.isArray(texts) || texts.length === 0 || texts.length > 96)
      return answer.json(400, { message: 'invalid request: total number of texts must be at most 96' })
    if (
      texts.some((text) => typeof text !== 'string' || text === '') ||
      !model ||
      !['search_document', 'search_query'].includes(kind ?? '') ||
      types?.join() !== 'float'
    )
      return answer.json(400, { message: 'invalid request: valid input_type must be provided with the provided model' })
    answer.json(200, {
      id: '1',
      embeddings: { float: scenario?.kind === 'embed' ? scenario.vectors : [] },
      texts,
      meta: { api_version: { version: '2' }, billed_units: { input_tokens: 4 } },
    })
  }

  async function give(answer: Answering, scenario: Scenario): Promise<void> {
    const stream = (pieces: readonly string[], line?: 'held'): Promise<void> =>
      answer.stream('text/event-stream', pieces, line)
    const start = event('message-start', {
      id: 'm-1',
      delta: { message: { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] } },
    })
    const block = (index: number, kind: 'text' | 'thinking', texts: readonly string[]): string[] =>
      texts.length === 0
        ? []
        : [
            event('content-start', { index, delta: { message: { content: { type: kind, [kind]: '' } } } }),
            ...texts.map((text) =>
              event('content-delta', { index, delta: { message: { content: { [kind]: text } } } }),
            ),
            event('content-end', { index }),
          ]
    const said = (texts: readonly string[]): string[] => [start, ...block(0, 'text', texts).slice(0, -1)]
    const usual = {
      billed_units: { input_tokens: 10, output_tokens: 5 },
      tokens: { input_tokens: 500, output_tokens: 7 },
    }
    const end = (finish: string, usage: object | undefined, error?: string): string[] => [
      event('message-end', { delta: { finish_reason: finish, ...(usage && { usage }), ...(error && { error }) } }),
      'data: [DONE]\n\n',
    ]
    switch (scenario.kind) {
      case 'text': {
        const usage =
          scenario.usage === undefined ? usual : scenario.usage === 'missing' ? undefined : USAGE[scenario.usage]
        const citation = event('citation-start', {
          index: 0,
          delta: { message: { citations: { start: 0, end: 1, text: 'x', sources: [] } } },
        })
        return stream([
          start,
          ...block(0, 'thinking', scenario.thinking ?? []),
          ...block(1, 'text', scenario.deltas),
          citation,
          event('citation-end', { index: 0 }),
          ...end(scenario.stop === 'length' ? 'MAX_TOKENS' : 'COMPLETE', usage),
        ])
      }
      case 'calls':
        return stream([
          start,
          ...(scenario.thinking ?? ['I will ', 'use a tool']).map((plan) =>
            event('tool-plan-delta', { delta: { message: { tool_plan: plan } } }),
          ),
          ...scenario.calls.flatMap(({ name, args }, index) => [
            event('tool-call-start', {
              index,
              delta: {
                message: {
                  tool_calls: { id: `${name}_${index}x`, type: 'function', function: { name, arguments: '' } },
                },
              },
            }),
            ...(JSON.stringify(args).match(/[^]{1,3}/g) ?? []).map((piece) =>
              event('tool-call-delta', {
                index,
                delta: { message: { tool_calls: { function: { arguments: piece } } } },
              }),
            ),
            event('tool-call-end', { index }),
          ]),
          ...end('TOOL_CALL', usual),
        ])
      case 'held':
        return stream(said(scenario.deltas), 'held')
      case 'embed':
        throw new Error('vectors are asked for elsewhere')
      case 'status':
        // A deny-listed word has a status of its own. Source: https://docs.cohere.com/reference/errors
        if (scenario.about === 'content_filter')
          return answer.json(498, { message: 'blocked: this request contains a deny-listed token' })
        return answer.json(
          scenario.status,
          {
            id: '1',
            message:
              scenario.about === 'context_length'
                ? 'too many tokens: size limit exceeded by 1203 tokens. Try using shorter or fewer inputs.'
                : 'It failed.',
          },
          scenario.headers,
        )
      case 'fault':
        return faulty(answer, scenario.fault, {
          said: said(scenario.deltas),
          end: end('COMPLETE', usual),
          overloaded: end('ERROR', undefined, 'the model is overloaded'),
        })
    }
  }

  const server = await startVendor(handle)
  return Object.assign(server, {
    play: (scenario: Scenario) => {
      scenarios.push(scenario)
    },
    completions,
    heard: () => heardOf(completions.at(-1)?.body as Body),
  })
}

function refuse(body: Body): string | undefined {
  const field = Object.keys(body).find((key) => !KNOWN.has(key))
  if (field !== undefined) return `invalid request: unknown field: parameter '${field}' is not a valid field`
  if (
    body.stream !== true ||
    typeof body.model !== 'string' ||
    !Array.isArray(body.messages) ||
    body.messages.length === 0
  )
    return 'invalid request: messages must be provided'
  if (body.tools && body.response_format) return 'invalid request: response_format is not supported with RAG or tools'
  if (body.thinking && !body.model.includes('reasoning'))
    return 'invalid request: thinking is not supported with this model'
  const names = new Set<unknown>()
  for (const { type, function: tool } of body.tools ?? []) {
    if (
      type !== 'function' ||
      !/^[a-zA-Z_][\w-]*$/.test(String(tool?.name)) ||
      tool?.parameters?.type !== 'object' ||
      names.has(tool.name)
    )
      return 'invalid request: tools are invalid'
    names.add(tool.name)
  }
  let open: unknown[] = []
  for (const { role, content, tool_calls: calls, tool_call_id: answered, tool_plan: plan } of body.messages) {
    if (role === 'tool') {
      if (!open.includes(answered))
        return `invalid request: tool_call_id ${String(answered)} not found in the previous tool calls`
      open = open.filter((id) => id !== answered)
      if (
        !Array.isArray(content) ||
        content.some(({ type, text }) => type !== 'text' || typeof text !== 'string' || text === '')
      )
        return 'invalid request: tool content must not be empty'
      continue
    }
    if (open.length > 0) return 'invalid request: all tool calls must be answered by tool messages'
    if (role !== 'system' && role !== 'user' && role !== 'assistant')
      return 'invalid request: role must be one of system, user, assistant, tool'
    if (calls === undefined && (content === undefined || content.length === 0))
      return `invalid request: all elements in messages must have content`
    if (plan !== undefined && (role !== 'assistant' || !calls || typeof plan !== 'string'))
      return 'invalid request: tool_plan is only for tool calls'
    if (Array.isArray(content))
      for (const block of content) {
        if (
          block.type === 'image_url'
            ? role !== 'user' ||
              !/^data:image\/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+={0,2}$/.test(String(block.image_url?.url))
            : typeof block[block.type === 'thinking' ? 'thinking' : 'text'] !== 'string'
        )
          return 'invalid request: invalid content'
      }
    open = (calls ?? []).map(({ id }) => id)
    if (
      calls?.some(
        ({ id, type, function: made }) =>
          typeof id !== 'string' ||
          type !== 'function' ||
          typeof made?.name !== 'string' ||
          typeof made.arguments !== 'string',
      )
    )
      return 'invalid request: tool_calls are invalid'
  }
  return open.length > 0 ? 'invalid request: all tool calls must be answered by tool messages' : undefined
}

function heardOf({ messages = [], tools = [] }: Body): Heard {
  const blocks = messages
    .filter(({ role }) => role !== 'system' && role !== 'tool')
    .flatMap(({ content = [] }) =>
      typeof content === 'string' ? [{ type: 'text', text: content }] : content,
    ) as Block[]
  return {
    system: messages
      .filter(({ role }) => role === 'system')
      .map(({ content }) => String(content))
      .join('\n'),
    texts: blocks.flatMap(({ text }) => (typeof text === 'string' ? [text] : [])),
    images: blocks.flatMap(({ image_url: image }) => {
      const [, mime, base64] = /^data:([^;]+);base64,(.*)$/.exec(String(image?.url)) ?? []
      return mime && base64 ? [{ mime, base64 }] : []
    }),
    tools: tools.map(({ function: tool }) => String(tool?.name)),
    calls: messages
      .flatMap(({ tool_calls: calls = [] }) => calls)
      .map(({ function: made }) => ({ name: String(made?.name), args: parsed(String(made?.arguments)) })),
    results: messages.flatMap(({ role, content }) =>
      role === 'tool' && Array.isArray(content) ? [String(content[0]?.text)] : [],
    ),
  }
}
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text /* what the model wrote is no JSON */
  }
}
