import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { AcceptedTurn, Chat } from '../chat/contract.ts'
import { decodeQuestion } from './decode.ts'
import { encodeChunks } from './encode-chunk.ts'
import { encodeCompletion } from './encode-completion.ts'
import type { Head } from './encode-completion.ts'
import { toOpenAiError } from './problem.ts'
import { Chunk, Completion, CompletionBody, ModelList } from './schema.ts'
import { PREFIX, selectAgent } from './select.ts'

export function openAiRoutes(agents: Agents, chat: Chat): readonly AnyRoute[] {
  const completions = defineRoute({
    method: 'POST', path: '/v1/chat/completions', summary: 'Chat with an agent through OpenAI\'s API',
    description: '`model` selects the agent: `svc:<name>`, an agent id or a name; anything else is the first agent. Only the last message of the user is '
      + 'forwarded: the agent has its own system prompt and keeps its own history, so earlier messages are not read. Images are data URLs. A request that is aborted cancels its turn.',
    auth: 'bearer', cost: 30, body: CompletionBody, returns: Completion, streams: Chunk, renderError: toOpenAiError,
    errors: ['model_not_found', 'payload_too_large', 'rate_limit', 'service_unavailable'],
    example: { body: { model: 'svc:assistant', messages: [{ role: 'user', content: 'What time is it?' }] } },
    async handle({ body, signal }) {
      const question = decodeQuestion(body.messages)
      const agent = await selectAgent(agents, body.model)
      const turn = await chat.accept({ agentId: agent.id, door: 'openai', ...question, ...options(body) })
      const head = toHead(turn, agent)
      cancelOnAbort(turn, signal)
      return body.stream === true ? encodeChunks(head, turn) : encodeCompletion(head, await turn.result())
    },
  })
  const models = defineRoute({
    method: 'GET', path: '/v1/models', summary: 'List the agents as models of OpenAI\'s API',
    auth: 'bearer', cost: 2, returns: ModelList, renderError: toOpenAiError,
    async handle() {
      return {
        object: 'list' as const,
        data: (await agents.list()).map(({ name, createdAt }) => ({ id: PREFIX + name, object: 'model' as const, created: toSeconds(createdAt), owned_by: 'svc' })),
      }
    },
  })
  return [completions, models]
}

/** Here the client asks to stop by leaving: this API has no other way to say it. Cancelling a turn that has ended does nothing. */
function cancelOnAbort(turn: AcceptedTurn, signal: AbortSignal): void {
  if (signal.aborted) turn.cancel()
  else signal.addEventListener('abort', () => turn.cancel(), { once: true })
}
function options(body: CompletionBody) {
  const maxTokens = body.max_completion_tokens ?? body.max_tokens
  return {
    ...(typeof body.temperature === 'number' ? { temperature: body.temperature } : {}), ...(typeof maxTokens === 'number' ? { maxTokens } : {}),
  }
}
function toHead(turn: AcceptedTurn, agent: Agent): Head {
  return { id: `chatcmpl-${turn.id}`, created: Math.floor(Date.now() / 1000), model: agent.name }
}
function toSeconds(iso: string): number { return Math.floor(Date.parse(iso) / 1000) }
