import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import { ContentTypeNotSupportedError, VersionNotSupportedError } from '@a2a-js/sdk/errors'
import { JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server'
import { readJsonBody } from 'svc/internal'
import { Refusal, reply } from 'svc/sdk'
import type { EventStream, Reply, ServerSentEvent } from 'svc/sdk'
import {
  currentMethods,
  legacyMethods,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  readEnvelope,
  readParams,
  RpcFault,
} from './envelope.ts'
import type { RpcId, RpcRequest } from './envelope.ts'
import type { RequestHandler } from './handler.ts'
import { rpcError } from './translate.ts'
import type { PushRow } from './rows/store.ts'

type Version = PushRow['version']
export interface RpcDeps {
  readonly handler: (version: Version) => RequestHandler
  /** The header `A2A-Version`. */
  readonly version: string | undefined
  /** The header `Content-Type`. */
  readonly type: string | undefined
  /** Throws when there are too many; the returned function ends it. */
  readonly openStream: () => () => void
  readonly translate: (error: unknown) => Error
}
type Envelope = { readonly jsonrpc: '2.0'; readonly id: RpcId; readonly result?: unknown; readonly error?: unknown }

/** Answers one request of JSON-RPC, of either version. Never throws for what a client sends. */
export async function answerRpc(body: Uint8Array, deps: RpcDeps): Promise<Reply | EventStream> {
  let version: Version = isCurrent(deps.version) ? '1.0' : '0.3'
  let request: RpcRequest | undefined
  try {
    checkType(deps.type)
    request = readEnvelope(readBody(body))
    version = versionOf(request, deps.version)
    const { method, id } = request
    const methods = version === '1.0' ? currentMethods : legacyMethods
    const schema = Object.hasOwn(methods, method) ? methods[method] : undefined
    if (!schema) throw new RpcFault(METHOD_NOT_FOUND, `Method not found: ${method.slice(0, 100)}`, id)
    const call = { jsonrpc: '2.0' as const, id, method, params: readParams(request, schema) }
    const context = new ServerCallContext({ requestedVersion: version })
    const handler = deps.handler(version)
    const transport =
      version === '1.0' ? new JsonRpcTransportHandler(handler) : new LegacyJsonRpcTransportHandler(handler)
    const answer: unknown = await transport.handle(call, context)
    if (!isStream(answer)) return toReply(answer)
    return await beginStream(answer, { ...deps, version, id })
  } catch (error) {
    return toReply(failure(error, version, request?.id ?? null, deps.translate))
  }
}

function checkType(type: string | undefined): void {
  const essence = type?.split(';', 1)[0]?.trim().toLowerCase() ?? 'application/json'
  if (/^application\/(?:[\w.-]+\+)?json$/.test(essence)) return
  throw new ContentTypeNotSupportedError(
    `Content-Type ${essence.slice(0, 100)} is not supported; send application/json`,
  )
}
function readBody(body: Uint8Array): unknown {
  try {
    return readJsonBody(body)
  } catch (error) {
    throw new RpcFault(PARSE_ERROR, error instanceof Refusal ? error.message : 'The body is not valid JSON')
  }
}

const isCurrent = (version: string | undefined): boolean => /^1\.0(?:\.\d+)?$/.test(version?.trim() ?? '')
const isLegacy = (version: string | undefined): boolean => /^(?:0\.3(?:\.\d+)?)?$/.test(version?.trim() ?? '')

/** The names of the methods tell the versions apart; a header that is there has to agree. */
function versionOf({ method }: RpcRequest, header: string | undefined): Version {
  if (isCurrent(header)) return '1.0'
  if (!isLegacy(header))
    throw new VersionNotSupportedError(`A2A-Version: ${header?.slice(0, 32) ?? ''} is not supported; 1.0 and 0.3 are`)
  const isNamed = header !== undefined && header.trim() !== ''
  return !isNamed && Object.hasOwn(currentMethods, method) ? '1.0' : '0.3'
}

function isStream(answer: unknown): answer is AsyncGenerator<Envelope, void, undefined> {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer
}

interface StreamFacts extends RpcDeps {
  readonly version: Version
  readonly id: RpcId
}
/** What fails before the first event is an answer of its own. */
async function beginStream(
  events: AsyncGenerator<Envelope, void, undefined>,
  facts: StreamFacts,
): Promise<EventStream> {
  let close: (() => void) | undefined
  try {
    close = facts.openStream()
    const first = await events.next()
    return encode(first, events, close, facts)
  } catch (error) {
    close?.()
    await events.return()
    throw error
  }
}
async function* encode(
  first: IteratorResult<Envelope, void>,
  events: AsyncGenerator<Envelope, void, undefined>,
  close: () => void,
  { version, id, translate }: StreamFacts,
): AsyncGenerator<ServerSentEvent> {
  try {
    for (let step = first; step.done !== true; step = await events.next()) yield { data: JSON.stringify(step.value) }
  } catch (error) {
    yield { event: 'error', data: JSON.stringify(failure(error, version, id, translate)) }
  } finally {
    close()
    await events.return()
  }
}

function failure(error: unknown, version: Version, id: RpcId, translate: RpcDeps['translate']): Envelope {
  if (error instanceof RpcFault) return failure(rpcError(error.code, error.message), version, error.id, translate)
  const known = error instanceof Error && 'toErrorInfo' in error ? error : translate(error)
  const shown =
    version === '1.0'
      ? JsonRpcTransportHandler.mapToJSONRPCError(known)
      : LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(known)
  return { jsonrpc: '2.0', id, error: shown }
}
function toReply(answer: unknown): Reply {
  return reply(JSON.stringify(answer), { 'content-type': 'application/json' })
}
