import { namesSecret } from '../log/secret-name.ts'
import { readOwnJson } from '../schema/nesting.ts'
import type { Answer } from './answer.ts'
import { shapeDigest, shapeOf } from './answer-shape.ts'
import type { RoutedRequest } from './pipeline.ts'
import type { Entry } from './router.ts'

/** A read-only request of the operator and its JSON answer, without content. */
export interface ReadAnswer {
  /** The plugin of the route. */
  readonly plugin: string
  /** The path with its query. */
  readonly path: string
  readonly status: number
  /** Of the names of the fields. */
  readonly shape: string
}

/** Names in a query that open something, beside those that usually hold a secret. */
const OPENING = new Set(['key', 'code', 'state', 'ticket', 'signature', 'sig'])

/** `undefined` for a request whose query may hold a secret, whose caller may see only a part, or that was not answered. */
export function readAnswer(
  { exchange, principal }: RoutedRequest,
  entry: Entry,
  answer: Answer,
): ReadAnswer | undefined {
  if (principal?.kind !== 'operator' && principal?.kind !== 'anonymous') return undefined
  const { status, body } = answer
  if (typeof body !== 'string' || status === 304 || status === 429 || status >= 500) return undefined
  const names = [...new URLSearchParams(exchange.query).keys()]
  if (names.some((name) => OPENING.has(name.toLowerCase()) || namesSecret(name))) return undefined
  return {
    plugin: entry.scope.name,
    path: exchange.query === '' ? exchange.path : `${exchange.path}?${exchange.query}`,
    status,
    shape: shapeDigest(shapeOf(readOwnJson(body))),
  }
}
