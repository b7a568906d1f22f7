import { findNearest, suggest } from 'svc/internal'
import { defineRoute, omitUndefined, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import { TurnInterrupted } from '../chat/contract.ts'
import type { AcceptedTurn, Chat, TurnResult, Turns } from '../chat/contract.ts'
import type { Conversations, Place } from './conversations.ts'
import { encodeChunks } from './encode-chunk.ts'
import { encodeCompletion } from './encode-completion.ts'
import type { Head } from './encode-completion.ts'
import { toOpenAiError } from './problem.ts'
import { Chunk, Completion, CompletionBody, Model, ModelList, ModelParams } from './schema.ts'
import { namedAgent, PREFIX, selectAgent } from './select.ts'

export interface OpenAiDeps {
  readonly agents: Agents
  readonly chat: Chat
  readonly turns: Turns
  readonly conversations: () => Promise<Conversations>
  /** Absent when images are not fetched from their addresses. */
  readonly fetchImage?: (url: URL, signal: AbortSignal) => Promise<Uint8Array>
}

const description =
  '`model` selects the agent: `svc:<name>`, an agent id or a name; anything else is the first agent. ' +
  'The agent answers with its own system prompt and tools.\n\n' +
  'Conversations: the last message of the user is the question. ' +
  "A request with nothing else goes on in the agent's own session, and so does one whose earlier messages " +
  'are what that session ends with. ' +
  'A request with another history, or with system messages, is a conversation of the client: ' +
  'it is answered from exactly the messages given, in a session of its own that is found again by its content, ' +
  "and the agent's session is neither read nor written. " +
  "System messages follow the agent's own system prompt. " +
  '`user` gives each user of the client a session of their own; ' +
  'the header `X-Svc-Session` (a session id, a label, or any name) names one, ' +
  'and only the last message is read then.\n\n' +
  'Images are data URLs; https addresses are fetched when the configuration allows it (`fetch_images`). ' +
  '`tools` have no effect (`warnings` says so): the agent calls its own; a `tool_choice` that insists is 400. ' +
  'A request that is aborted cancels its turn, unless it has an `Idempotency-Key`.'

export function openAiRoutes(deps: OpenAiDeps): readonly AnyRoute[] {
  return [completionsRoute(deps), modelListRoute(deps), modelRoute(deps)]
}

function completionsRoute(deps: OpenAiDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/v1/chat/completions',
    summary: "Chat with an agent through OpenAI's API",
    description,
    auth: 'bearer',
    effect: 'conversation',
    cost: 30,
    body: CompletionBody,
    returns: Completion,
    streams: Chunk,
    renderError: toOpenAiError,
    idempotent: true,
    errors: [
      'model_not_found',
      'session_not_found',
      'payload_too_large',
      'conflict',
      'rate_limit',
      'service_unavailable',
      TurnInterrupted,
    ],
    example: { body: { model: 'svc:assistant', messages: [{ role: 'user', content: 'What time is it?' }] } },
    async handle(request) {
      const { body, signal, effectId } = request
      const { head, turn, place } = await accept(deps, request)
      if (effectId === undefined) cancelOnAbort(turn, signal)
      return answer(body, head, turn, place)
    },
    async recall(id, { body }) {
      const turn = await deps.turns.replay(id)
      if (!turn) return undefined
      const { decodeUnused } = await import('./decode.ts')
      return answer(body, toHead(id, await selectAgent(deps.agents, body.model), decodeUnused(body)), turn, undefined)
    },
  })
}

function modelListRoute({ agents }: OpenAiDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/v1/models',
    summary: "List the agents as models of OpenAI's API",
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    returns: ModelList,
    renderError: toOpenAiError,
    async handle() {
      return { object: 'list' as const, data: (await agents.list()).map(toModel) }
    },
  })
}

function modelRoute({ agents }: OpenAiDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/v1/models/**:id',
    summary: "Read an agent as a model of OpenAI's API",
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: ModelParams,
    returns: Model,
    renderError: toOpenAiError,
    errors: ['model_not_found'],
    async handle({ params }) {
      const agent = await namedAgent(agents, params.id)
      if (!agent) {
        const names = (await agents.list()).flatMap(({ name }) => [name, PREFIX + name])
        throw new Refusal(
          'model_not_found',
          `The model '${params.id}' does not exist${suggest(findNearest(params.id, names))}`,
        )
      }
      return toModel(agent)
    },
  })
}

interface CompletionRequest {
  readonly body: CompletionBody
  readonly signal: AbortSignal
  readonly header: (name: string) => string | undefined
  readonly effectId?: string | undefined
}
async function accept({ agents, chat, conversations, fetchImage }: OpenAiDeps, request: CompletionRequest) {
  const { body, signal, header, effectId } = request
  const { decodeFormat, decodeMessages, decodeUnused, loadImages } = await import('./decode.ts')
  const input = await loadImages(decodeMessages(body.messages), fetchImage && ((url) => fetchImage(url, signal)))
  const warnings = decodeUnused(body)
  const agent = await selectAgent(agents, body.model)
  const names = { session: header('x-svc-session')?.trim() || undefined, user: body.user?.trim() || undefined }
  const place = await (await conversations()).place(agent, names, input)
  const turn = await chat.accept({
    agentId: agent.id,
    sessionId: place.sessionId,
    entryPoint: 'openai',
    text: input.question.text,
    images: input.question.images,
    ...omitUndefined({
      temperature: body.temperature ?? undefined,
      maxTokens: body.max_completion_tokens ?? body.max_tokens ?? undefined,
      instructions: input.instructions || undefined,
      responseFormat: decodeFormat(body),
      id: effectId,
      // Who sent a key asks again with it, and gets the answer then.
      resumable: effectId === undefined ? undefined : true,
    }),
  })
  return { head: toHead(turn.id, agent, warnings), turn, place }
}
async function answer(
  body: CompletionBody,
  head: Head,
  turn: Pick<AcceptedTurn, 'events' | 'result'>,
  place: Place | undefined,
) {
  const ended = async ({ stop, text }: TurnResult): Promise<void> => {
    if (stop !== 'cancelled') await place?.answered(text)
  }
  if (body.stream === true) return encodeChunks(head, turn, ended)
  const result = await turn.result()
  await ended(result)
  return encodeCompletion(head, result)
}
/**
 * A client of this API cancels an answer by disconnecting: it has no other way. Cancelling a turn that has ended does
 * nothing.
 */
function cancelOnAbort(turn: AcceptedTurn, signal: AbortSignal): void {
  if (signal.aborted) turn.cancel()
  else signal.addEventListener('abort', () => turn.cancel(), { once: true })
}
function toHead(turnId: string, agent: Agent, warnings: readonly string[]): Head {
  return { id: `chatcmpl-${turnId}`, created: Math.floor(Date.now() / 1000), model: agent.name, warnings }
}
function toModel({ name, createdAt }: Agent) {
  return {
    id: PREFIX + name,
    object: 'model' as const,
    // 0: the row of the agent was written by another version or a person.
    created: Math.floor(Date.parse(createdAt) / 1000) || 0,
    owned_by: 'svc',
  }
}
