import { Refusal } from '../errors/error.ts'

/** `key`: the configuration key of `max`. */
export interface HopLimit {
  readonly max: number
  readonly key: string
}

/** The hop count in a message of another daemon, 0 when it has none. Throws `Refusal`. */
export function readHops(value: unknown, limit: HopLimit): number {
  const hops = value ?? 0
  if (typeof hops !== 'number' || !Number.isSafeInteger(hops) || hops < 0)
    throw new Refusal('invalid_request', 'The hop count must be a whole number from 0')
  return checkHops(hops, limit)
}
/** The hop count of a message on its way to another daemon; `hops`: that of what it is part of. Throws `Refusal`. */
export function nextHop(hops: number | undefined, limit: HopLimit): number {
  return checkHops((hops ?? 0) + 1, limit)
}
function checkHops(hops: number, { max, key }: HopLimit): number {
  if (hops <= max) return hops
  const text = `This came through ${hops} daemons, ${key} allows ${max}: they may ask each other in a circle`
  throw new Refusal('conflict', text)
}
