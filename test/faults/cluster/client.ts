import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Json } from '../../support/json.ts'
import { json } from '../home.ts'

/** No request may wait longer, whatever happens to the daemons meanwhile. */
export const HANGS_MS = 60_000
const RETRY_MS = 100

type Headers = Readonly<Record<string, string>>
export interface Answer {
  readonly status: number
  readonly headers: Response['headers']
  readonly body: Json
}

/** What one program knows: an address, and what it was answered. */
export class Client {
  readonly url: string
  readonly #problems: string[]
  #last: string | undefined
  constructor(url: string, problems: string[]) {
    this.url = url
    this.#problems = problems
  }

  problem(text: string): void {
    this.#problems.push(text)
  }

  /** One request. `undefined` when no daemon answered it: it may have taken effect or not. */
  async ask(method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Answer | undefined> {
    const response = await this.open(method, path, body, headers)
    const text = await response?.text().catch(() => undefined)
    this.#last = response && `${response.status}: ${text}`
    // What the balancer says itself is not JSON.
    if (!response || text === undefined || (isDown(response.status) && !text.startsWith('{'))) return undefined
    if (response.status === 500) this.problem(`${method} ${path} answered ${this.#last}`)
    const answer = {
      status: response.status,
      headers: response.headers,
      body: text === '' ? undefined : JSON.parse(text),
    }
    return isDown(response.status) && !(await this.#isFinal(answer)) ? undefined : answer
  }
  /** Whether a turn failed for good: then the same request will not get another answer. */
  async #isFinal({ body }: Answer): Promise<boolean> {
    const turnId = (body as Json).error?.details?.turn_id
    if (turnId === undefined) return false
    const turn = await this.open('GET', `/api/turns/${turnId}`)
    if (turn?.status !== 200) return false
    const { state } = (await turn.json().catch(() => ({}))) as Json
    return state === 'failed' || state === 'interrupted'
  }
  /** The same until a daemon has answered, under one key unless `headers` says otherwise. */
  async insist(method: string, path: string, body?: unknown, headers?: () => Headers): Promise<Answer> {
    const key = method === 'GET' ? {} : { 'idempotency-key': randomUUID() }
    for (const began = performance.now(); performance.now() - began < HANGS_MS; await delay(RETRY_MS)) {
      const answer = await this.ask(method, path, body, headers?.() ?? key)
      // The same request is being worked on, for the answer that was lost.
      if (answer && answer.status !== 409) return answer
    }
    throw new Error(`${method} ${path} had no answer in ${HANGS_MS / 1000} s; the last one was ${this.#last}`)
  }
  async get(path: string): Promise<Json> {
    const { status, body } = await this.insist('GET', path)
    if (status !== 200) throw new Error(`GET ${path} answered ${status}: ${JSON.stringify(body)}`)
    return body
  }

  /** Makes something, once; its id. */
  async make(path: string, id: string, body: unknown): Promise<string> {
    const { status, body: made } = await this.insist('POST', path, body)
    if (status >= 300) throw new Error(`POST ${path} answered ${status}: ${JSON.stringify(made)}`)
    return made[id]
  }

  /** A response whose body is still to be read; `undefined` when the connection failed. */
  async open(method: string, path: string, body?: unknown, headers: Headers = {}): Promise<Response | undefined> {
    const signal = AbortSignal.timeout(HANGS_MS)
    try {
      return await fetch(this.url + path, {
        method,
        headers: { ...json, ...headers },
        signal,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
    } catch {
      if (signal.aborted) this.problem(`${method} ${path} hung for ${HANGS_MS / 1000} s`)
      return undefined
    }
  }
}

/** That a daemon was not there, or could not reach its database: not an answer to the request. */
export function isDown(status: number): boolean {
  return status === 502 || status === 503 || status === 504
}

/** That the daemon stopped that worked on a message without a key: it is in its session, and not answered any more. */
export function isInterrupted(body: Json): boolean {
  return body?.error?.code === 'turn_failed'
}

/** Whether the daemon at `host:port` takes requests. */
export function isReady(address: string): Promise<boolean> {
  return fetch(`http://${address}/api/ready`, { signal: AbortSignal.timeout(5_000) }).then(
    ({ ok }) => ok,
    () => false,
  )
}

/** Polls until the check holds; whether it did in time. */
export async function until(check: () => Promise<boolean> | boolean, patienceMs: number): Promise<boolean> {
  for (const began = performance.now(); ; await delay(RETRY_MS)) {
    if (await check()) return true
    if (performance.now() - began > patienceMs) return false
  }
}
