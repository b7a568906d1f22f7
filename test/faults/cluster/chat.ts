import { setTimeout as delay } from 'node:timers/promises'
import type { Json } from '../../support/json.ts'
import { HANGS_MS, isDown, isInterrupted, until } from './client.ts'
import type { Client } from './client.ts'
import { agentOf, SETTLES_MS } from './load.ts'
import type { Load } from './load.ts'
import type { Marks } from './marks.ts'
import { labelOf } from './model.ts'

const CLIENTS = 5
const PAUSE_MS = 60

/** One message of one client: what was said, and what it was told of it. */
interface Sent {
  readonly label: string
  readonly agentId: string
  readonly entry: string
  /** That it is on record. */
  turnId: string | undefined
  /** Its answer came, and this is the text. */
  answer: string | undefined
}
type Send = (sent: Sent, message: string) => Promise<void>

/**
 * People who write to agents by every entry point. A message `mark X` makes the model call the tool `mark`, which writes
 * a line to a file each time it really runs; the answer to `X` always ends in `<X>`.
 */
export class ChatLoad implements Load {
  readonly figures = { messages: 0, answered: 0 }
  readonly #client: Client
  readonly #marks: Marks
  readonly #sent: Sent[] = []
  #agents: readonly string[] = []
  constructor(client: Client, marks: Marks) {
    this.#client = client
    this.#marks = marks
  }

  /** Agents for the messages of one round, so that conversations stay short. */
  async prepare(round: number): Promise<void> {
    const agents: string[] = []
    for (const name of ['one', 'two', 'three'])
      agents.push(await this.#client.make('/api/agents', 'agent_id', agentOf(`chat-${round}-${name}`)))
    this.#agents = agents
  }

  /** Sends messages until the signal. */
  async run(round: number, signal: AbortSignal): Promise<void> {
    await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        for (let n = 0; !signal.aborted; n++) {
          const [entry, send] = this.#entries[(client + n) % this.#entries.length] ?? []
          const agentId = this.#agents[(client + n) % this.#agents.length]
          if (!entry || !send || agentId === undefined) throw new Error('no entry point')
          const label = `m${round}-${client}-${n}`
          const sent: Sent = { label, agentId, entry, turnId: undefined, answer: undefined }
          this.#sent.push(sent)
          await send(sent, `${n % 2 === 0 ? 'mark' : 'say'} ${label}`)
          await delay(PAUSE_MS)
        }
      }),
    )
  }

  /** Once everything has healed: what is lost, there twice, or still open. */
  async check(): Promise<readonly string[]> {
    const problems: string[] = []
    this.figures.messages += this.#sent.length
    this.figures.answered += this.#sent.filter(({ answer }) => answer !== undefined).length
    for (const { label } of this.#sent)
      if (this.#marks.of(label) > 1) problems.push(`the tool was called ${this.#marks.of(label)} times for ${label}`)
    for (const agentId of new Set(this.#sent.map((sent) => sent.agentId))) {
      const sent = this.#sent.filter((each) => each.agentId === agentId)
      problems.push(...(await this.#checkAgent(agentId, sent)))
    }
    this.#sent.length = 0
    return problems
  }
  async #checkAgent(agentId: string, sent: readonly Sent[]): Promise<string[]> {
    const problems: string[] = []
    let turns: readonly Json[] = []
    const ended = await until(async () => {
      ;({ turns } = await this.#client.get(`/api/agents/${agentId}/turns?limit=500`))
      return turns.every(({ state }) => !['queued', 'running', 'waiting'].includes(state))
    }, SETTLES_MS)
    if (!ended)
      for (const turn of turns.filter(({ state }) => ['queued', 'running', 'waiting'].includes(state)))
        problems.push(`turn ${turn.turn_id} is still ${turn.state}`)
    const states = new Map(turns.map((turn) => [turn.turn_id, turn.state as string]))
    const { messages } = (await this.#client.get(`/api/agents/${agentId}/session?limit=500`)) as Json
    const said = new Map<string, string[]>()
    const asked = new Map<string, number>()
    let answers: string[] = []
    for (const { role, content } of messages as readonly { role: string; content: string }[]) {
      if (role !== 'User') {
        answers.push(content)
        continue
      }
      const label = labelOf(content) ?? content
      asked.set(label, (asked.get(label) ?? 0) + 1)
      said.set(label, (answers = []))
    }
    for (const { label, entry, turnId, answer } of sent) {
      const times = asked.get(label) ?? 0
      const what = `${label} (${entry})`
      if (times > 1) problems.push(`${what} is in its session ${times} times`)
      if (turnId !== undefined && !states.has(turnId)) problems.push(`turn ${turnId} of ${what} is lost`)
      if (turnId !== undefined && times === 0) problems.push(`${what} was accepted and is not in its session`)
      if (answer === undefined) continue
      const found = said.get(label)?.join(' ') ?? ''
      if (!found.includes(`<${label}>`)) problems.push(`the answer to ${what} is lost: ${JSON.stringify(found)}`)
      if (!answer.includes(`<${label}>`)) problems.push(`the answer to ${what} was ${JSON.stringify(answer)}`)
      if (answer.includes('marked') && this.#marks.of(label) !== 1)
        problems.push(`${what}: the tool answered, and ran ${this.#marks.of(label)} times`)
    }
    return problems
  }

  /** An answer by REST; a status that no message of these may have is a problem. */
  #take(sent: Sent, status: number, turnId: string | null, body: Json): void {
    sent.turnId = turnId ?? undefined
    if (status === 200) sent.answer = body.response
    // It was interrupted, and its session says so. What has a key goes on.
    else if (status === 503 || isInterrupted(body)) sent.turnId = body.error.details.turn_id
    else this.#client.problem(`${sent.label} (${sent.entry}) answered ${status}: ${JSON.stringify(body)}`)
  }
  readonly #entries: readonly (readonly [string, Send])[] = [
    [
      'rest',
      async (sent, message) => {
        const answer = await this.#client.ask('POST', `/api/agents/${sent.agentId}/message`, { message })
        if (answer) this.#take(sent, answer.status, answer.headers.get('x-turn-id'), answer.body)
      },
    ],
    [
      'rest with a key',
      async (sent, message) => {
        const path = `/api/agents/${sent.agentId}/message`
        const { status, headers, body } = await this.#client.insist('POST', path, { message })
        this.#take(sent, status, headers.get('x-turn-id'), body)
      },
    ],
    ['sse', (sent, message) => this.#stream(sent, `/api/agents/${sent.agentId}/message/stream`, { message })],
    [
      'openai',
      (sent, message) =>
        this.#stream(sent, '/v1/chat/completions', {
          model: `svc:${sent.agentId}`,
          stream: true,
          messages: [{ role: 'user', content: message }],
        }),
    ],
    ['websocket', (sent, message) => this.#socket(sent, message)],
  ]

  async #stream(sent: Sent, path: string, body: object): Promise<void> {
    const response = await this.#client.open('POST', path, body)
    if (!response) return
    let text = ''
    try {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString()
    } catch {
      // The daemon is gone.
    }
    if (
      response.status !== 200 &&
      !isDown(response.status) &&
      !(text.startsWith('{') && isInterrupted(JSON.parse(text)))
    )
      this.#client.problem(`${sent.label} (${sent.entry}) answered ${response.status}: ${text}`)
    if (response.status !== 200) return
    sent.turnId = response.headers.get('x-turn-id') ?? undefined
    if (/^event: done$|^data: \[DONE\]$/m.test(text)) sent.answer = textOf(text)
  }
  #socket(sent: Sent, message: string): Promise<void> {
    return new Promise((resolve) => {
      const socket = new WebSocket(`${this.#client.url.replace('http', 'ws')}/api/agents/${sent.agentId}/ws`)
      const hangs = setTimeout(() => {
        this.#client.problem(`${sent.label} (${sent.entry}) hung for ${HANGS_MS / 1000} s`)
        socket.close()
        resolve()
      }, HANGS_MS)
      const end = (): void => {
        clearTimeout(hangs)
        socket.close()
        resolve()
      }
      socket.addEventListener('message', ({ data }) => {
        const frame = JSON.parse(String(data)) as Json
        if (frame.turn_id !== undefined) sent.turnId = frame.turn_id
        if (frame.type === 'connected') socket.send(JSON.stringify({ type: 'message', content: message }))
        else if (frame.type === 'response') {
          sent.answer = frame.content
          end()
        } else if (frame.type === 'error') end()
      })
      socket.addEventListener('close', end)
      socket.addEventListener('error', end)
    })
  }
}

/** The deltas of a stream of either format, joined. */
function textOf(stream: string): string {
  return stream
    .split('\n')
    .flatMap((line) => {
      if (!line.startsWith('data: {')) return []
      const data = JSON.parse(line.slice('data: '.length)) as Json
      return data.choices?.[0]?.delta?.content ?? (data.type === 'chunk' ? data.content : [])
    })
    .join('')
}
