import type { IncomingHttpHeaders } from 'node:http'
import type { ChatBody } from './fake-provider-rules.ts'

/**
 * How a vendor departs from OpenAI: where its methods are, who may call, what else it refuses, and what else it says.
 */
export interface Dialect {
  readonly base: string
  readonly chat: (path: string) => boolean
  readonly embeddings?: string
  /** Why a caller may not come in. */
  admit(headers: IncomingHttpHeaders): string | undefined
  refuse?(body: ChatBody, headers: IncomingHttpHeaders): string | undefined
  /** Sent before the first chunk. */
  readonly prelude?: string
  /** The delta that holds a piece of thinking. */
  thought?(text: string, index: number): object
  /** It tells its usage without being asked. */
  readonly usageUnasked?: boolean
  /** A whole answer to a path that is not OpenAI's. */
  other?(path: string, headers: IncomingHttpHeaders): { readonly status: number; readonly body: object } | undefined
}
const bearer =
  (key: string) =>
  ({ authorization }: IncomingHttpHeaders): string | undefined =>
    authorization === `Bearer ${key}` ? undefined : 'Incorrect API key provided.'
const openai: Dialect = {
  base: '/v1',
  chat: (path) => path === '/v1/chat/completions',
  embeddings: '/v1/embeddings',
  admit: bearer('test-key'),
}
/** The answers with calls of the turn that goes on. */
const running = ({ messages = [] }: ChatBody) =>
  messages
    .slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
    .filter(({ tool_calls: calls }) => calls !== undefined)

const azureHeaders = (headers: IncomingHttpHeaders): string | undefined =>
  headers['api-key'] === 'test-key' && headers.authorization === undefined
    ? undefined
    : 'Access denied due to invalid subscription key or wrong API endpoint.'
// What was asked is judged before the answer begins, in a chunk without choices. Source: Azure's page on content
// filtering.
const filterResults = `data: ${JSON.stringify({ choices: [], created: 0, id: '', model: '', object: '', prompt_filter_results: [{ prompt_index: 0, content_filter_results: { hate: { filtered: false, severity: 'safe' } } }] })}\n\n`

/** Half an hour, in seconds since 1970. */
const soon = (): number => Math.floor(Date.now() / 1000) + 1800

export const dialects = {
  openai,
  azure: {
    base: '',
    chat: (path) => path === '/openai/v1/chat/completions',
    embeddings: '/openai/v1/embeddings',
    admit: azureHeaders,
    prelude: filterResults,
  },
  'azure-deployment': {
    base: '',
    chat: (path) => path === '/openai/deployments/fake-1/chat/completions?api-version=2024-10-21',
    embeddings: '/openai/deployments/fake-1/embeddings?api-version=2024-10-21',
    admit: azureHeaders,
    prelude: filterResults,
  },
  copilot: {
    base: '',
    chat: (path) => path === '/chat/completions',
    admit: bearer('tid=1;exp=2;sku=free'),
    refuse(body, headers) {
      if (!headers['editor-version'] || headers['copilot-integration-id'] !== 'vscode-chat')
        return 'bad request: missing Editor-Version header for IDE auth'
      const sees = body.messages?.some(
        ({ content }) => Array.isArray(content) && content.some(({ type }) => type === 'image_url'),
      )
      if (sees && headers['copilot-vision-request'] !== 'true')
        return 'bad request: missing required Copilot-Vision-Request header for vision requests'
      return headers['x-initiator'] === (body.messages?.at(-1)?.role === 'tool' ? 'agent' : 'user')
        ? undefined
        : 'bad request: X-Initiator'
    },
    other(path, headers) {
      if (path !== '/copilot_internal/v2/token') return undefined
      if (headers.authorization !== 'token test-key')
        return {
          status: 401,
          body: { message: 'Bad credentials', documentation_url: 'https://docs.github.com/rest', status: '401' },
        }
      return {
        status: 200,
        body: {
          token: 'tid=1;exp=2;sku=free',
          expires_at: soon(),
          refresh_in: 1500,
          endpoints: { api: 'https://api.individual.githubcopilot.com' },
          sku: 'free_limited_copilot',
          chat_enabled: true,
        },
      }
    },
  },
  deepseek: {
    ...openai,
    // Source: https://api-docs.deepseek.com/guides/thinking_mode
    refuse: (body) =>
      body.thinking?.type !== 'disabled' &&
      running(body).some(({ reasoning_content: thought }) => typeof thought !== 'string' || thought === '')
        ? 'Missing `reasoning_content` field in the assistant message: in thinking mode it must be passed back to the API.'
        : undefined,
  },
  openrouter: {
    ...openai,
    prelude: ': OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n',
    thought: (text, index) => ({
      reasoning: text,
      reasoning_details: [
        {
          type: 'reasoning.text',
          text,
          index,
          format: 'anthropic-claude-v1',
          ...(index === 1 && { signature: 'sig' }),
        },
      ],
    }),
    refuse: (body) =>
      running(body).some(
        ({ reasoning_details: details }) =>
          details !== undefined &&
          JSON.stringify(details) !==
            JSON.stringify(
              ['hm ', '日本😀']
                .map((text, index) => dialects.openrouter.thought?.(text, index))
                .flatMap((one) => (one && 'reasoning_details' in one ? one.reasoning_details : [])),
            ),
      )
        ? 'Invalid signature in reasoning_details'
        : undefined,
  },
  mistral: {
    ...openai,
    usageUnasked: true,
    refuse(body) {
      if (body.stream_options !== undefined)
        return '[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]'
      for (const { tool_calls: calls = [], tool_call_id: answered } of body.messages ?? []) {
        for (const id of [...calls.map((call) => call.id), ...(answered === undefined ? [] : [answered])])
          if (!/^[a-zA-Z0-9]{9}$/.test(String(id)))
            return `Tool call id was ${String(id)} but must be a-z, A-Z, 0-9, with a length of 9.`
      }
      return undefined
    },
    // Models that think say so in parts of the content.
    thought: (text) => ({ content: [{ type: 'thinking', thinking: [{ type: 'text', text }] }] }),
  },
} satisfies Record<string, Dialect> as Record<DialectName, Dialect>
export type DialectName = 'openai' | 'azure' | 'azure-deployment' | 'copilot' | 'deepseek' | 'openrouter' | 'mistral'
