import * as v from 'valibot'
import { EventStreamReader, readJson, StreamedText, UpstreamFailure } from 'svc/sdk'
import { estimateUsage, plausible, readArgs } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ToolCall, Usage } from 'svc/providers'
import { writeReplay } from './replay.ts'
import { StreamEvent, WireUsage } from './wire.ts'

const MOST_CALLS = 256
/** Arguments of one call that grow over this are a fault of the other side. In characters. */
const MOST_ARGS = 8_388_608

/** Turns the pieces of one streamed answer into events. Citations are left out. Holds no timers and no connections. */
export class Decoder {
  readonly #name: string
  readonly #request: CompletionRequest
  readonly #said: StreamedText
  readonly #stream = new EventStreamReader(
    ({ data }) => this.#event(data),
    (most) => this.#said.broken(`sent a line of more than ${most} characters`),
  )
  #thought = ''
  #plan = ''
  readonly #calls = new Map<number, { id: string; name: string; args: string }>()
  #usage: unknown
  #finish: string | undefined
  #problem: string | undefined

  constructor(name: string, request: CompletionRequest) {
    this.#name = name
    this.#said = new StreamedText(name)
    this.#request = request
  }

  feed(bytes: Uint8Array): readonly CompletionEvent[] {
    this.#stream.feed(bytes)
    return this.#said.take()
  }

  /** The rest, ending with `end`. Throws `cut` when the answer stopped before its end. */
  finish(): readonly CompletionEvent[] {
    this.#stream.finish()
    const finish = this.#said.requireEnd(this.#finish)
    const said = this.#said.take()
    if (finish === 'ERROR' || finish === 'TIMEOUT') {
      const overloaded = /overload|capacity|unavailable/i.test(this.#problem ?? '')
      throw new UpstreamFailure(this.#name, `${this.#name} failed during its answer: ${this.#problem ?? finish}`, {
        reason: finish === 'TIMEOUT' ? 'timeout' : overloaded ? 'overloaded' : 'server_error',
        retry: 'later',
      })
    }
    const calls = this.#endCalls()
    const replay = calls.length > 0 ? writeReplay({ plan: this.#plan, thinking: this.#thought }) : undefined
    const stop =
      finish === 'MAX_TOKENS'
        ? ('length' as const)
        : finish === 'ERROR_TOXIC'
          ? ('refused' as const)
          : calls.length > 0
            ? ('calls' as const)
            : ('done' as const)
    return [
      ...said,
      ...calls.map((call) => ({ type: 'call' as const, call })),
      {
        type: 'end',
        stop,
        usage: readUsage(this.#usage) ?? estimateUsage(this.#request, this.#said.chars),
        ...(replay !== undefined && { replay }),
      },
    ]
  }

  #event(data: string): void {
    if (data === '[DONE]') return
    let json: unknown
    try {
      json = readJson(data)
    } catch {
      return this.#said.skip()
    }
    const text = usualText(json)
    if (text !== undefined) {
      this.#said.seen = true
      return this.#said.say(text)
    }
    const read = v.safeParse(StreamEvent, json)
    if (!read.success) return this.#said.skip()
    this.#said.seen = true
    const { type, index, delta } = read.output
    const message = delta?.message
    if (type === 'message-end') {
      this.#finish = delta?.finish_reason ?? 'COMPLETE'
      this.#problem = delta?.error ?? undefined
      this.#usage = delta?.usage
    } else if (type === 'tool-plan-delta') {
      this.#plan += message?.tool_plan ?? ''
      this.#said.think(message?.tool_plan ?? '')
    } else if (message?.tool_calls && !Array.isArray(message.tool_calls))
      this.#call(type === 'tool-call-start', index ?? 0, message.tool_calls)
    else if (message?.content && !Array.isArray(message.content)) {
      const { text, thinking } = message.content
      if (thinking) this.#thought += thinking
      if (thinking) this.#said.think(thinking)
      if (text) this.#said.say(text)
    }
  }

  #call(
    starts: boolean,
    index: number,
    {
      id,
      function: part,
    }: {
      readonly id?: string | null | undefined
      readonly function?:
        | { readonly name?: string | null | undefined; readonly arguments?: string | null | undefined }
        | null
        | undefined
    },
  ): void {
    let call = this.#calls.get(index)
    if (!call || (starts && call.name !== '')) {
      if (this.#calls.size >= MOST_CALLS) throw this.#said.broken(`made more than ${MOST_CALLS} tool calls at once`)
      this.#calls.set(call ? this.#calls.size : index, (call = { id: id ?? `call_${index}`, name: '', args: '' }))
    }
    if (part?.name) call.name = part.name
    call.args += part?.arguments ?? ''
    if (call.args.length > MOST_ARGS) throw this.#said.broken('sent arguments of a tool call that have no end')
  }

  #endCalls(): readonly ToolCall[] {
    const used = new Set<string>()
    return [...this.#calls.entries()]
      .sort(([a], [b]) => a - b)
      .map(([, { id, name, args }]) => {
        this.#said.chars += name.length + args.length
        let unique = id
        for (let copy = 2; used.has(unique); copy++) unique = `${id}_${copy}`
        used.add(unique)
        return { id: unique, name, args: readArgs(args) }
      })
  }
}

/** The text of an event that says nothing else, as nearly all do. Looked at by hand: a schema costs more than the parsing of the JSON. */
function usualText(json: unknown): string | undefined {
  if (
    !isObject(json) ||
    json.type !== 'content-delta' ||
    !isObject(json.delta) ||
    !isObject(json.delta.message) ||
    !isObject(json.delta.message.content)
  )
    return undefined
  const { text, thinking } = json.delta.message.content
  return typeof text === 'string' && !thinking ? text : undefined
}
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** What is charged for, or else what was counted: Cohere's own words around a prompt are counted and not charged for. */
function readUsage(wire: unknown): Usage | undefined {
  const read = v.safeParse(WireUsage, wire)
  if (!read.success) return undefined
  const { billed_units: billed, tokens, cached_tokens: cached } = read.output
  const input = billed?.input_tokens ?? tokens?.input_tokens
  const output = billed?.output_tokens ?? tokens?.output_tokens
  if (input == null || output == null) return undefined
  const total = { input, output }
  if (!plausible(total)) return undefined
  return {
    ...total,
    ...(cached != null && cached > 0 && plausible({ ...total, cachedInput: cached }) && { cachedInput: cached }),
  }
}
