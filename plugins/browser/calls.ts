import { allowsHost, fence } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Counter, PluginContext, ToolAnswer, ToolCallContext } from 'svc/sdk'
import type { Workspaces } from '../files/contract.ts'
import { notAllowed } from './admission.ts'
import type { AdmissionDeps } from './admission.ts'
import type { Browsers } from './browsers.ts'
import type { Settings } from './config.ts'
import { saveDownloads } from './downloads.ts'
import type { Failure, Reply, Session } from './session.ts'
import type { DriverArgs, Op, PageContent, Place } from './wire.ts'

export interface CallDeps extends AdmissionDeps {
  readonly browsers: Browsers
  readonly settings: Settings
  readonly workspaces: Workspaces
  /** Throws for an address that `[outbound]` refuses, as far as known without a connection. */
  readonly admit: PluginContext<unknown, {}, {}>['admit']
  readonly steps: Counter
}
interface Step {
  readonly op: Op
  readonly args?: DriverArgs
  readonly timeoutMs?: number
  readonly opens?: boolean
  /** What the agent is told, between the marks of text from outside. */
  readonly text?: (result: NonNullable<Reply['result']>) => string
}

/** The calls of the tools. */
export class BrowserCalls {
  readonly #deps: CallDeps
  constructor(deps: CallDeps) {
    this.#deps = deps
  }

  async navigate(address: string, call: ToolCallContext): Promise<ToolAnswer> {
    const { agents, audit, admit } = this.#deps
    const url = new URL(address)
    if (url.protocol !== 'http:' && url.protocol !== 'https:')
      throw new Refusal('forbidden', `Pages are opened over http and https only, not ${url.protocol}`)
    const { id, manifest } = await agents.require(call.agentId)
    try {
      const patterns = manifest.capabilities.network
      if (!allowsHost(patterns, url)) throw notAllowed(url, patterns)
      await admit(url)
    } catch (error) {
      if (error instanceof Refusal)
        await audit.write({
          event: 'capability_check',
          agentId: id,
          details: `denied: browser opens ${url.origin}: ${error.message}`,
        })
      throw error
    }
    await audit.write({ event: 'network_access', agentId: id, details: `browser opens ${url.origin}` })
    return this.#step(call, {
      op: 'navigate',
      args: { url: url.href },
      opens: true,
      text: ({ value = '' }) => (value === '' ? '' : `Status: ${value}`),
    })
  }
  click(selector: string, call: ToolCallContext): Promise<ToolAnswer> {
    return this.#step(call, { op: 'click', args: { selector } })
  }
  type(selector: string, text: string, call: ToolCallContext): Promise<ToolAnswer> {
    return this.#step(call, { op: 'type', args: { selector, text } })
  }
  scroll(direction: 'up' | 'down' | 'left' | 'right', amount: number, call: ToolCallContext): Promise<ToolAnswer> {
    return this.#step(call, {
      op: 'scroll',
      args: { direction, amount },
      text: ({ value = '' }) => `Scrolled to ${value} pixels from the top`,
    })
  }
  wait(selector: string, timeoutMs: number, call: ToolCallContext): Promise<ToolAnswer> {
    return this.#step(call, { op: 'wait', args: { selector }, timeoutMs, text: () => 'It is there.' })
  }
  runScript(expression: string, call: ToolCallContext): Promise<ToolAnswer> {
    const maxChars = this.#deps.settings.max_content_chars
    return this.#step(call, {
      op: 'run',
      args: { expression, maxChars },
      text: ({ value = '' }) => `Result: ${value.slice(0, maxChars + 1)}`,
    })
  }
  back(call: ToolCallContext): Promise<ToolAnswer> {
    return this.#step(call, { op: 'back' })
  }
  readPage(call: ToolCallContext): Promise<ToolAnswer> {
    const maxChars = this.#deps.settings.max_content_chars
    return this.#step(call, {
      op: 'read',
      args: { maxChars },
      text: ({ content }) => (content ? cut(`\n${describe(content)}`, maxChars) : ''),
    })
  }
  async screenshot(call: ToolCallContext): Promise<ToolAnswer> {
    const { workspaces, settings } = this.#deps
    let image = ''
    const answer = await this.#step(call, {
      op: 'screenshot',
      text: ({ value = '' }) => {
        image = value
        return ''
      },
    })
    if (answer.failed) return answer
    const name = `screenshots/${new Date().toISOString().replaceAll(/[:.]/g, '-')}.jpg`
    await workspaces.write(call.agentId, name, Buffer.from(image, 'base64'))
    const size = `${settings.viewport_width} × ${settings.viewport_height}`
    const text = `Saved ${name} (${size}). image_analyze looks at it.\n${answer.text}`
    return {
      text,
      content: [
        { type: 'text', text },
        { type: 'image', data: image, mimeType: 'image/jpeg' },
      ],
    }
  }
  async close({ agentId }: ToolCallContext): Promise<string> {
    return (await this.#deps.browsers.close(agentId, 'the agent closed it')) ? 'Closed.' : 'No browser was open.'
  }

  /** What the browser of an agent shows; `undefined` when it has none. Does not wait for a step that runs. */
  async state(agentId: string, signal: AbortSignal) {
    const { browsers } = this.#deps
    const view = browsers.find(agentId)
    if (!view) return undefined
    const known = { url: view.url, title: view.title, content: '', screenshot_base64: null }
    if (browsers.isBusy(agentId)) return known
    try {
      return await browsers.watch(agentId, async (session) => {
        const { place, result } = await session.call('state', { maxChars: 2000 }, 5000, signal)
        if (!result || !place) return known
        const { url, title } = place
        return { url, title, content: result.content?.text ?? '', screenshot_base64: result.value ?? null }
      })
    } catch (error) {
      // It was closed meanwhile.
      if (error instanceof Refusal) return undefined
      throw error
    }
  }

  async #step(call: ToolCallContext, { op, args = {}, timeoutMs, opens = false, text }: Step): Promise<ToolAnswer> {
    const { browsers, settings, steps } = this.#deps
    const { agentId, signal } = call
    const limit = timeoutMs ?? settings.timeout_secs * 1000
    return browsers.use(agentId, opens, signal, async (session) => {
      session.takeFailures()
      const from = browsers.find(agentId)?.url ?? ''
      const { place, error, result } = await this.#call(session, op, args, limit, signal)
      const failures = session.takeFailures()
      const refused = place && refusalOf(place, failures, args.url)
      const failed = error !== undefined || refused !== undefined
      steps.add(1, { op, outcome: failed ? 'failed' : 'done' })
      if (place) await this.#arrive(agentId, from, place)
      const saved = place ? await this.#save(session, call, place) : []
      const lines = [
        ...(error === undefined ? [] : [`Failed: ${error}`]),
        ...(refused === undefined ? [] : [`Refused: ${refused}`]),
        ...(place ? where(place) : []),
        ...(failed || !result || !text ? [] : [text(result)]),
        ...(refused === undefined
          ? failures.slice(0, 5).map(({ host, why }) => `No connection to ${host}: ${why}`)
          : []),
      ]
      const shown = fence(lines.filter((line) => line !== '').join('\n'))
      return { text: [...saved, shown].join('\n'), failed }
    })
  }

  async #call(session: Session, op: Op, args: DriverArgs, limit: number, signal: AbortSignal): Promise<Reply> {
    try {
      return await session.call(op, args, limit, signal)
    } catch (error) {
      this.#deps.steps.add(1, { op, outcome: 'closed' })
      throw error
    }
  }
  /** A click or a script may lead to another origin than the one that was opened. */
  async #arrive(agentId: string, from: string, { url, title }: Place): Promise<void> {
    const { audit, browsers } = this.#deps
    browsers.looksAt(agentId, { url, title })
    const origin = originOf(url)
    if (origin !== undefined && origin !== originOf(from))
      await audit.write({ event: 'network_access', agentId, details: `browser shows ${origin}` })
  }
  #save(session: Session, { agentId, signal }: ToolCallContext, { downloads }: Place): Promise<readonly string[]> {
    const { workspaces, settings } = this.#deps
    return saveDownloads({ workspaces, session, agentId, signal, maxBytes: settings.max_download_bytes }, downloads)
  }
}

function originOf(url: string): string | undefined {
  const parsed = URL.parse(url)
  return parsed && /^https?:$/.test(parsed.protocol) ? parsed.origin : undefined
}
/** Why the page itself was refused; its parts may be missing all the same. */
function refusalOf({ url }: Place, failures: readonly Failure[], asked: string | undefined): string | undefined {
  if (asked === undefined) return undefined
  const hosts = new Set([url, asked].map((each) => URL.parse(each)?.host))
  return failures.find(({ host }) => hosts.has(host))?.why
}
const where = ({ url, title, notes }: Place): readonly string[] => [
  `Title: ${title}`,
  `URL: ${url === '' ? 'none' : url}`,
  ...notes.map((note) => `Note: ${note}`),
]
function describe({ text, links, fields, buttons }: PageContent): string {
  const list = (heading: string, lines: readonly string[]): readonly string[] =>
    lines.length === 0 ? [] : ['', `${heading}:`, ...lines.map((line) => `- ${line}`)]
  return [
    text,
    ...list(
      'Fields',
      fields.map(
        ({ selector, label, type, value }) => `${selector} (${type}) ${label}${value === '' ? '' : ` = ${value}`}`,
      ),
    ),
    ...list(
      'Buttons',
      buttons.map(({ selector, text: name }) => `${selector}: ${name}`),
    ),
    ...list(
      'Links',
      links.map(({ text: name, href }) => `${name}: ${href}`),
    ),
  ].join('\n')
}
const cut = (text: string, maxChars: number): string =>
  text.length <= maxChars
    ? text
    : `${text.slice(0, maxChars).toWellFormed()}\n[cut: ${text.length - maxChars} more characters]`
