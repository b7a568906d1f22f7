import { isObject, UpstreamFailure } from 'svc/sdk'
import type { CompletionEvent, Embeddings } from 'svc/providers'

/** The fields of a usage that a driver may leave out. */
const OPTIONAL_COUNTS = ['cachedInput', 'cacheWrite', 'thinking'] as const
const STOPS: ReadonlySet<unknown> = new Set(['done', 'length', 'calls', 'refused'])

/**
 * An event of a driver, checked field by field: drivers come from plugins, whose types are not enforced at run time.
 * Throws a failure that names the provider and the field. Does not check whether figures are plausible.
 */
export function checkEvent(provider: string, event: unknown): CompletionEvent {
  const require = (ok: boolean, field: string, expected: string, value: unknown): void => {
    if (!ok) throw broken(provider, `its ${field} must be ${expected}, not ${shown(value)}`)
  }
  if (!isObject(event)) throw broken(provider, `an event must be an object, not ${shown(event)}`)
  switch (event['type']) {
    case 'text':
    case 'thinking':
      require(typeof event['delta'] === 'string', `event "${event['type']}": delta`, 'a string', event['delta'])
      break
    case 'call': {
      const { call } = event
      if (!isObject(call)) throw broken(provider, `its event "call": call must be an object, not ${shown(call)}`)
      for (const field of ['id', 'name'])
        require(typeof call[field] === 'string', `event "call": call.${field}`, 'a string', call[field])
      break
    }
    case 'end': {
      const { stop, usage, replay } = event
      require(STOPS.has(stop), 'event "end": stop', '"done", "length", "calls" or "refused"', stop)
      require(replay === undefined || typeof replay === 'string', 'event "end": replay', 'a string', replay)
      checkUsage(provider, usage)
      break
    }
    default:
      throw broken(
        provider,
        `an event must be of type "text", "thinking", "call" or "end", not ${shown(event['type'])}`,
      )
  }
  return event as CompletionEvent
}

function checkUsage(provider: string, usage: unknown): void {
  if (!isObject(usage)) throw broken(provider, `its event "end": usage must be an object, not ${shown(usage)}`)
  const isCount = (field: string): boolean =>
    typeof usage[field] === 'number' || (usage[field] === undefined && OPTIONAL_COUNTS.some((one) => one === field))
  for (const field of ['input', 'output', ...OPTIONAL_COUNTS])
    if (!isCount(field))
      throw broken(provider, `its event "end": usage.${field} must be a number, not ${shown(usage[field])}`)
}

/** What a driver embedded, checked the same way. */
export function checkEmbeddings(provider: string, embedded: unknown): Embeddings {
  const { vectors, usage } = isObject(embedded) ? embedded : {}
  if (!Array.isArray(vectors)) throw broken(provider, `its vectors must be an array, not ${shown(vectors)}`)
  if (!isObject(usage) || typeof usage['input'] !== 'number')
    throw broken(
      provider,
      `usage.input of its vectors must be a number, not ${shown(isObject(usage) ? usage['input'] : usage)}`,
    )
  return embedded as unknown as Embeddings
}

/** What a driver answered to a probe, checked the same way. */
export function checkProbe(provider: string, probed: unknown): { readonly model: string } {
  if (isObject(probed) && typeof probed['model'] === 'string') return { model: probed['model'] }
  throw broken(
    provider,
    `the model of its probe must be a string, not ${shown(isObject(probed) ? probed['model'] : probed)}`,
  )
}

function shown(value: unknown): string {
  if (value === undefined || typeof value === 'number') return String(value)
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 50))
  if (value === null) return 'null'
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`
}

function broken(provider: string, what: string): UpstreamFailure {
  return new UpstreamFailure(provider, `The driver of provider ${provider} is defective: ${what}`, {
    reason: 'malformed',
    retry: 'never',
  })
}
