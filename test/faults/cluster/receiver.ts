import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Json } from '../../support/json.ts'

const RESULTS = /^\/(?:slot|trigger|event)\//

/**
 * What is sent out arrives here, and is counted. For results and events it fails now and then, before it takes one and after it did;
 * a step of a workflow that fails would end its run.
 */
export class Receiver implements AsyncDisposable {
  /** By the path: how often a request came under each key, also while it failed. */
  readonly arrivals = new Map<string, Map<string, number>>()
  /** Bodies that were taken, by the path; each key once. */
  readonly taken = new Map<string, Json[]>()
  readonly #random: () => number
  readonly #keys = new Set<string>()
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const path = request.url ?? ''
      const key = String(request.headers['idempotency-key'])
      const chance = RESULTS.test(path) ? this.#random() : 1
      const counts = this.arrivals.get(path) ?? new Map<string, number>()
      this.arrivals.set(path, counts.set(key, (counts.get(key) ?? 0) + 1))
      if (chance < 0.03) return void response.writeHead(503).end()
      if (chance < 0.05) return void response.destroy()
      if (!this.#keys.has(`${path} ${key}`)) {
        this.#keys.add(`${path} ${key}`)
        const text = Buffer.concat(chunks).toString()
        const body = text.startsWith('{') ? (JSON.parse(text) as Json) : text
        this.taken.set(path, [...(this.taken.get(path) ?? []), body])
      }
      if (chance < 0.07) return void response.destroy()
      response.writeHead(200).end('taken')
    })
  })
  private constructor(random: () => number) {
    this.#random = random
  }
  static async start(random: () => number): Promise<Receiver> {
    const receiver = new Receiver(random)
    receiver.#server.listen(0, '127.0.0.1')
    await once(receiver.#server, 'listening')
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }
  /** How many different requests came to a path. */
  keysAt(path: string): number {
    return this.arrivals.get(path)?.size ?? 0
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
