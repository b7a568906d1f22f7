import * as v from 'valibot'
import type { ErrorDefinition } from '../../errors/codes.ts'
import { Refusal, UpstreamFailure } from '../../errors/error.ts'
import type { ErrorCode } from '../../errors/error.ts'
import { isObject } from '../../schema/object.ts'
import { ErrorRow } from './shapes.ts'
import { messageOf } from '../../errors/message.ts'

const TAG = '~type'
/** JSON has no bytes, no large integers, no `undefined` and no streams. Functions do not cross. */
export function encode(value: unknown, toId: (stream: AsyncIterable<unknown>) => number): unknown {
  const inner = (one: unknown): unknown => encode(one, toId)
  if (value === undefined) return { [TAG]: 'undefined' }
  if (typeof value === 'bigint') return { [TAG]: 'bigint', value: String(value) }
  if (value instanceof Uint8Array) return { [TAG]: 'bytes', value: Buffer.from(value).toString('base64') }
  if (value instanceof Date) return value.toISOString()
  if (Array.isArray(value)) return value.map(inner)
  if (isObject(value) && Symbol.asyncIterator in value)
    return { [TAG]: 'stream', value: toId(value as unknown as AsyncIterable<unknown>) }
  if (!isObject(value)) return typeof value === 'function' || typeof value === 'symbol' ? null : value
  const fields = Object.fromEntries(
    entriesOf(value).flatMap(([key, one]) =>
      one === undefined || typeof one === 'function' ? [] : [[key, inner(one)]],
    ),
  )
  // Somebody's data is no encoded value.
  return TAG in fields ? { [TAG]: 'object', value: fields } : fields
}

/** Fields, and what the class of an object computes. */
function entriesOf(value: Readonly<Record<string, unknown>>): readonly (readonly [string, unknown])[] {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || !isObject(prototype)) return Object.entries(value)
  const computed = Object.entries(Object.getOwnPropertyDescriptors(prototype)).filter(([, { get }]) => get)
  return [...Object.entries(value), ...computed.map(([key]) => [key, value[key]] as const)]
}

export function decode(value: unknown, toStream: (id: number) => AsyncIterable<unknown>): unknown {
  const inner = (one: unknown): unknown => decode(one, toStream)
  if (Array.isArray(value)) return value.map(inner)
  if (!isObject(value)) return value
  const content = value['value']
  if (value[TAG] === 'undefined') return undefined
  if (value[TAG] === 'bigint' && typeof content === 'string' && /^-?\d{1,40}$/.test(content)) return BigInt(content)
  if (value[TAG] === 'bytes' && typeof content === 'string') return new Uint8Array(Buffer.from(content, 'base64'))
  if (value[TAG] === 'stream' && typeof content === 'number') return toStream(content)
  const fields = value[TAG] === 'object' && isObject(content) ? content : value
  // Code that copies it with `Object.assign` would set the prototype of the copy.
  const safe = Object.entries(fields).filter(([key]) => key !== '__proto__')
  return Object.fromEntries(safe.map(([key, one]) => [key, inner(one)]))
}

export function encodeError(error: unknown): object {
  const withoutStreams = (): number => -1
  if (error instanceof Refusal)
    return {
      kind: 'refusal',
      code: error.code,
      message: error.message,
      details: encode(error.details, withoutStreams),
      retryAfterSecs: error.retryAfterSecs,
      definition: error.definition,
    }
  if (error instanceof UpstreamFailure) return { ...error, kind: 'upstream', message: error.message, cause: undefined }
  return { kind: 'error', message: messageOf(error) }
}

const CODES =
  /^(invalid_request|unauthorized|forbidden|rate_limit|conflict|method_not_allowed|payload_too_large|service_unavailable)$/
const REASONS =
  /^(rate_limit|auth|overloaded|server_error|network|timeout|cut|malformed|context_length|content_filter|invalid_request|not_found)$/
export function decodeError(error: unknown): Error {
  const { kind, message, code, details, retryAfterSecs, system, reason, retry, definition } = isObject(error)
    ? error
    : {}
  const text = typeof message === 'string' ? message : 'it failed without a message'
  const after = typeof retryAfterSecs === 'number' ? { retryAfterSecs } : {}
  if (kind === 'refusal') {
    const own = v.safeParse(ErrorRow, definition)
    const known = typeof code === 'string' && (CODES.test(code) || /^[a-z_]{0,60}not_found$/.test(code))
    const otherwise = known ? (code as ErrorCode) : 'conflict'
    return new Refusal(own.success ? (own.output as ErrorDefinition) : otherwise, text, {
      ...after,
      ...(isObject(details) ? { details } : {}),
    })
  }
  if (kind !== 'upstream') return new Error(text)
  return new UpstreamFailure(typeof system === 'string' ? system : 'another system', text, {
    ...after,
    reason: typeof reason === 'string' && REASONS.test(reason) ? (reason as UpstreamFailure['reason']) : 'network',
    retry: retry === 'never' ? 'never' : 'later',
  })
}
