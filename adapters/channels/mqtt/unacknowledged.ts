import { randomUUID } from 'node:crypto'
import type { IPublishPacket } from 'mqtt'
import { isObject, readJson } from 'svc/sdk'
import type { Link } from './config.ts'
import { digestOf } from './decode.ts'

const KEY = 'unacknowledged'
/** More than a broker has on its way to a client at once. */
export const MAX_IN_FLIGHT = 20

interface Received {
  readonly packet: number
  readonly digest: string
  readonly id: string
}

/**
 * Ids for messages that have none. The broker repeats a message that was not acknowledged, perhaps after a restart, and
 * then it gets the id it had.
 */
export class Unacknowledged {
  readonly #state: Link['state']
  #received: Received[] | undefined

  constructor(state: Link['state']) {
    this.#state = state
  }

  async idOf(packet: IPublishPacket): Promise<string> {
    if (packet.qos === 0) return randomUUID()
    const received = (this.#received ??= await this.#read())
    const digest = digestOf(packet)
    const earlier = received.find((one) => packet.dup && one.packet === packet.messageId && one.digest === digest)
    if (earlier) return earlier.id
    const id = randomUUID()
    received.push({ packet: packet.messageId ?? 0, digest, id })
    if (received.length > MAX_IN_FLIGHT) received.shift()
    await this.#state.write(KEY, JSON.stringify(received))
    return id
  }

  async #read(): Promise<Received[]> {
    const stored: unknown = readJson((await this.#state.read(KEY)) ?? '[]')
    return Array.isArray(stored) ? stored.filter(isReceived) : []
  }
}

function isReceived(value: unknown): value is Received {
  return (
    isObject(value) &&
    typeof value['packet'] === 'number' &&
    typeof value['digest'] === 'string' &&
    typeof value['id'] === 'string'
  )
}
