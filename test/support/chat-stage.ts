import type { ConfigInput } from '../../core/config/schema.ts'
import { startFakeProvider } from './fake-provider.ts'
import type { FakeProvider } from './fake-provider.ts'
import { startHost } from './host.ts'
import type { HostOptions, TestHost } from './host.ts'
import type { Json } from './json.ts'

export interface ChatStage extends AsyncDisposable {
  readonly host: TestHost
  readonly fake: FakeProvider
  /** The agent of the first boot. */
  readonly agent: string
  /** Another agent, with the tools it is granted; its id. */
  spawn(name: string, tools?: readonly string[], more?: string): Promise<string>
  post(path: string, body?: unknown, init?: RequestInit): Promise<Response>
  /** The session as it is shown. */
  session(agent?: string): Promise<ShownSession>
}
export interface ShownMessage {
  readonly role: string
  readonly content: string
  readonly mark?: string
  readonly thinking?: string
  readonly failed?: true
  readonly error?: { readonly code: string; readonly message: string; readonly retryable: boolean }
  readonly turn_id: string
  readonly tools?: readonly {
    readonly name: string
    readonly input: unknown
    readonly result: string | null
    readonly is_error: boolean
  }[]
}
export interface ShownSession {
  readonly session_id: string
  readonly message_count: number
  readonly messages: readonly ShownMessage[]
}

/** A whole daemon whose agents talk to a fake provider over the wire. */
export async function openChat(
  options: Omit<HostOptions, 'config'> & {
    readonly config?: Record<string, unknown>
    readonly fake?: FakeProvider
  } = {},
): Promise<ChatStage> {
  const fake = options.fake ?? (await startFakeProvider())
  const host = await startHost({ ...options, config: toConfig(fake, options.config) })
  const post: ChatStage['post'] = (path, body, init = {}) =>
    host.fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...init,
    })
  const { body } = await host.json<{ id: string }[]>('GET', '/api/agents')
  const agent = body[0]?.id ?? ''
  return {
    host,
    fake,
    agent,
    post,
    async spawn(name, tools = ['*'], more = '') {
      const manifest_toml = `name = "${name}"\n${more}\n[capabilities]\ntools = ${JSON.stringify(tools)}\n`
      const answer = await host.json<{ agent_id: string }>('POST', '/api/agents', { manifest_toml })
      if (answer.status !== 201) throw new Error(`spawn answered ${answer.status}: ${JSON.stringify(answer.body)}`)
      return answer.body.agent_id
    },
    async session(of = agent) {
      return (await host.json<ShownSession>('GET', `/api/agents/${of}/session`)).body
    },
    async [Symbol.asyncDispose]() {
      try {
        await host[Symbol.asyncDispose]()
      } finally {
        if (!options.fake) await fake[Symbol.asyncDispose]()
      }
    },
  }
}

/** Configuration under which the fake is the default provider, with retries that a test need not wait for. */
export function toConfig(fake: FakeProvider, more: Record<string, unknown> = {}): ConfigInput {
  const { plugins, ...rest } = more as { plugins?: Record<string, unknown> }
  return {
    default_provider: 'openai',
    default_model: 'fake-1',
    providers: { openai: { base_url: fake.url, api_key: 'test-key' } },
    // A test that lets a model wait need not wait itself.
    http: { stream_status_ms: 200 },
    ...rest,
    plugins: {
      providers: { tries: 3, back_off_min_ms: 1, back_off_max_ms: 5, retry_after_max_ms: 2000 },
      ...plugins,
    } as NonNullable<ConfigInput['plugins']>,
  }
}

export interface ReadEvent {
  readonly event: string
  readonly data: Json
}
/** The events of a stream that has ended. */
export function parseEvents(text: string): readonly ReadEvent[] {
  return text
    .split('\n\n')
    .filter((block) => /^data: /m.test(block))
    .map((block) => {
      const field = (name: string): string =>
        block
          .split('\n')
          .filter((line) => line.startsWith(`${name}: `))
          .map((line) => line.slice(name.length + 2))
          .join('\n')
      const data = field('data')
      return { event: field('event'), data: data === '[DONE]' ? data : JSON.parse(data) }
    })
}
/** An iterable whose next item comes when the test says so. */
export function byHand(): { readonly text: AsyncIterable<string>; say(...deltas: string[]): void; end(): void } {
  const items: string[] = []
  let wake: (() => void) | undefined
  let ended = false
  return {
    text: (async function* () {
      for (;;) {
        const next = items.shift()
        if (next !== undefined) yield next
        else if (ended) return
        else
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
    })(),
    say(...deltas) {
      items.push(...deltas)
      wake?.()
    },
    end() {
      ended = true
      wake?.()
    },
  }
}
