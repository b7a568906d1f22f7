import * as v from 'valibot'
import type { Effect } from '../auth/authority.ts'
import type { OnDefect } from '../errors/defect.ts'
import { Refusal } from '../errors/error.ts'
import { findNearest, suggest } from '../schema/nearest.ts'
import { omitUndefined } from '../schema/object.ts'
import { Barrier } from '../scope/barrier.ts'
import { enforced } from '../scope/enforcement.ts'
import type { Scope } from '../scope/scope.ts'
import type { SecretScanner } from './secret-scanner.ts'
import { toInputSchema } from './input-schema.ts'
import type {
  AnyTool,
  CallAssessment,
  Recovery,
  Tool,
  ToolAnswer,
  ToolCallContext,
  ToolDescription,
  ToolResult,
  Tools,
} from './tool.ts'

export interface ToolLimits {
  readonly timeoutSecs: number
  /** Characters of output the model gets. */
  readonly outputChars: number
  /** Characters of the parts of an answer beside its text. */
  readonly contentChars: number
}
export interface ToolRegistryOptions {
  readonly limits: () => ToolLimits
  readonly onDefect: OnDefect
  /** Knows the secrets of the daemon: a tool that refuses the label `Secret` does not get arguments with one. */
  readonly secrets?: Pick<SecretScanner, 'add' | 'containsSecret'>
  /** Called when arguments with a secret were refused. */
  readonly onSecret?: (tool: string, call: ToolCallContext) => void
}
interface Registered {
  readonly tool: AnyTool
  readonly scope: Scope
  readonly description: Description
  /** Takes it away. */
  readonly remove: () => void
}

/** The JSON Schema of the input is made when it is first asked for: most tools are never offered to a model. */
class Description implements ToolDescription {
  readonly name: string
  readonly title: string | undefined
  readonly description: string
  readonly outputSchema: object | undefined
  readonly source: string | undefined
  readonly risk: Tool['risk']
  readonly effect: Effect
  readonly polls: boolean
  readonly labels: readonly string[]
  readonly refuses: readonly string[]
  readonly needs: string | undefined
  readonly reports: boolean
  readonly #schema: AnyTool['input']
  readonly #assess: AnyTool['assess']
  #input: object | undefined
  constructor(tool: AnyTool, source: string | undefined) {
    this.name = tool.name
    this.title = tool.title
    this.description = tool.description
    this.outputSchema = tool.outputSchema
    this.source = source
    this.risk = tool.risk
    this.effect = tool.effect ?? 'conversation'
    this.polls = tool.polls ?? false
    this.labels = tool.labels ?? []
    this.refuses = tool.refuses ?? []
    this.needs = tool.needs
    this.reports = tool.reports ?? false
    this.#schema = tool.input
    this.#assess = tool.assess
  }

  get input(): object {
    return (this.#input ??= toInputSchema(this.#schema))
  }
  assess(args: unknown): CallAssessment | undefined {
    if (!this.#assess) return undefined
    const parsed = v.safeParse(this.#schema, args, { abortPipeEarly: true })
    return parsed.success ? this.#assess(parsed.output) : undefined
  }
}

export class ToolRegistry {
  readonly #tools = new Map<string, Registered>()
  /** Descriptions of tools whose plugin is being replaced, so that they stay listed meanwhile. */
  readonly #held = new Map<string, Description>()
  readonly #barrier = new Barrier()
  readonly #options: ToolRegistryOptions
  #listed: readonly ToolDescription[] | undefined

  constructor(options: ToolRegistryOptions) {
    this.#options = options
  }

  forPlugin(scope: Scope): Tools {
    return {
      add: (...tools) => {
        for (const tool of tools) this.#add(scope, tool)
      },
      set: (source, tools) => this.#set(scope, source, tools),
      list: () => this.list(),
      find: (name) => this.#tools.get(name)?.description ?? this.#held.get(name),
      call: (name, args, call) => this.#call(scope.name, name, args, call),
      recover: (name, args, call) => this.#recover(scope.name, name, args, call),
      protectSecret: (value) => this.#options.secrets?.add(value),
      containsSecret: (args) => this.#options.secrets?.containsSecret(args) ?? false,
    }
  }

  list(): readonly ToolDescription[] {
    this.#listed ??= [
      ...new Map([
        ...this.#held,
        ...[...this.#tools].map(([name, { description }]) => [name, description] as const),
      ]).values(),
    ].sort((a, b) => (a.name < b.name ? -1 : 1))
    return this.#listed
  }

  /** Holds calls of the tools of these plugins until the returned function is called; the tools stay listed. */
  hold(plugins: readonly string[]): () => void {
    const held = [...this.#tools.values()]
      .filter(({ scope }) => plugins.includes(scope.name))
      .map(({ description }) => description)
    for (const description of held) this.#held.set(description.name, description)
    const release = this.#barrier.hold(
      held.map(({ name }) => name),
      plugins,
    )
    return () => {
      for (const { name } of held) this.#held.delete(name)
      this.#listed = undefined
      release()
    }
  }

  #set(scope: Scope, source: string, tools: readonly AnyTool[]): void {
    const earlier = [...this.#tools.values()].filter(
      (each) => each.scope === scope && each.description.source === source,
    )
    const names = new Set<string>()
    for (const { name } of tools) {
      if (names.has(name)) throw new Error(`plugin "${scope.name}" has two tools "${name}" from ${source}`)
      names.add(name)
      this.#checkName(scope, name, (other) => earlier.includes(other))
    }
    for (const { remove } of earlier) remove()
    for (const tool of tools) this.#add(scope, tool, source)
  }

  #checkName(scope: Scope, name: string, isFree: (other: Registered) => boolean): void {
    if (!/^[a-z][a-z0-9_]{0,63}$/.test(name))
      throw new Error(`tool "${name}" of plugin "${scope.name}": the name must be snake_case, at most 64 characters`)
    const other = this.#tools.get(name)
    if (other && !isFree(other))
      throw new Error(`tool "${name}" of plugin "${scope.name}" is taken by plugin "${other.scope.name}"`)
  }

  #add(scope: Scope, tool: AnyTool, source?: string): void {
    const { name } = tool
    this.#checkName(scope, name, () => false)
    const description = new Description(tool, source)
    const disown = scope.own('tool', name, () => {
      this.#tools.delete(name)
      this.#listed = undefined
    })
    this.#tools.set(name, { tool, scope, description, remove: disown })
    this.#listed = undefined
  }

  async #call(caller: string, name: string, args: unknown, call: ToolCallContext): Promise<ToolResult> {
    call.signal.throwIfAborted()
    const started = performance.now()
    const held = this.#barrier.wait(name, caller)
    if (held) await unlessAborted(held, call.signal)
    const found = this.#tools.get(name)
    const answer = (given: string | ToolAnswer, failed: boolean): ToolResult =>
      this.#cap(typeof given === 'string' ? { text: given } : given, failed, performance.now() - started)
    if (!found)
      return answer(`There is no tool "${name}"${suggest(findNearest(name, this.#tools.keys())) || '.'}`, true)
    const parsed = v.safeParse(found.tool.input, args, { abortPipeEarly: true })
    if (!parsed.success) return answer(describeIssues(name, parsed.issues), true)
    if (found.tool.refuses?.includes('Secret') && this.#options.secrets?.containsSecret(args)) {
      enforced('taint_tracking')
      this.#options.onSecret?.(name, call)
      return {
        ...answer(`${name} refuses Secret: its arguments hold a secret of this service, or a part of one.`, true),
        refused: 'Secret',
      }
    }
    return this.#run(found, parsed.output, call, answer)
  }

  async #recover(caller: string, name: string, args: unknown, call: ToolCallContext): Promise<Recovery> {
    call.signal.throwIfAborted()
    const held = this.#barrier.wait(name, caller)
    if (held) await unlessAborted(held, call.signal)
    const found = this.#tools.get(name)
    if (!found) return OUTCOME_UNKNOWN
    const parsed = v.safeParse(found.tool.input, args, { abortPipeEarly: true })
    // It would be refused again.
    if (!parsed.success) return { outcome: 'repeat' }
    const { tool, scope } = found
    if (!tool.recover) return tool.risk === 'read' ? { outcome: 'repeat' } : OUTCOME_UNKNOWN
    const leave = scope.enter()
    const recovering = invoke(async () => tool.recover?.(parsed.output, call) ?? OUTCOME_UNKNOWN)
    void recovering.then(leave, leave)
    try {
      return await unlessAborted(recovering, call.signal)
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason
      this.#options.onDefect(error, `plugin "${scope.name}", recovery of tool ${name}`)
      return OUTCOME_UNKNOWN
    }
  }

  async #run(
    { tool, scope }: Registered,
    input: unknown,
    call: ToolCallContext,
    answer: (given: string | ToolAnswer, failed: boolean) => ToolResult,
  ): Promise<ToolResult> {
    const timeoutSecs = tool.timeoutSecs ?? this.#options.limits().timeoutSecs
    const stop = new AbortController()
    const stopBy = (source: AbortSignal) => () => stop.abort(source.reason)
    const byCall = stopBy(call.signal)
    const byUnload = stopBy(scope.signal)
    call.signal.addEventListener('abort', byCall, { once: true })
    scope.signal.addEventListener('abort', byUnload, { once: true })
    // Made when the time is up: the stack of an error costs more than all else here.
    let timeUp: Error | undefined
    const timer = setTimeout(() => {
      timeUp = new Error(`tool "${tool.name}" took longer than ${timeoutSecs} s`)
      stop.abort(timeUp)
    }, timeoutSecs * 1000)
    timer.unref()
    const leave = scope.enter()
    const running = invoke(() => tool.run(input, { ...call, signal: stop.signal }))
    // The caller gets its answer at the time limit; unloading the plugin still waits for the tool.
    void running.then(leave, leave)
    try {
      const given: unknown = await unlessAborted(running, stop.signal)
      return isAnswer(given)
        ? answer(given, typeof given !== 'string' && given.failed === true)
        : answer(`The tool "${tool.name}" answered ${given === null ? 'null' : typeof given} instead of text.`, true)
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason
      if (stop.signal.aborted)
        return answer(
          stop.signal.reason === timeUp
            ? `The tool "${tool.name}" was stopped after ${timeoutSecs} seconds.`
            : `The tool "${tool.name}" was stopped: its plugin is being reloaded.`,
          true,
        )
      if (error instanceof Refusal) return answer(error.message, true)
      if (error instanceof Error && error.name === 'UpstreamFailure')
        return answer(`The tool "${tool.name}" failed: ${error.message}`, true)
      scope.countFailure(error)
      this.#options.onDefect(error, `plugin "${scope.name}", tool ${tool.name}`)
      return answer(`The tool "${tool.name}" failed.`, true)
    } finally {
      clearTimeout(timer)
      call.signal.removeEventListener('abort', byCall)
      scope.signal.removeEventListener('abort', byUnload)
    }
  }

  #cap({ text, content, structured }: ToolAnswer, failed: boolean, durationMs: number): ToolResult {
    const { outputChars, contentChars } = this.#options.limits()
    const size = content === undefined && structured === undefined ? 0 : JSON.stringify({ content, structured }).length
    // Half an image is none.
    const parts = size > contentChars ? {} : omitUndefined({ content, structured })
    const note = size > contentChars ? `\n[${size} characters of further content are not shown]` : ''
    if (text.length <= outputChars)
      return { text: `${text}${note}`, ...parts, failed, truncated: note !== '', durationMs }
    // Do not cut a surrogate pair.
    const end = /[\uD800-\uDBFF]/.test(text.charAt(outputChars - 1)) ? outputChars - 1 : outputChars
    const cut = `\n[cut: ${text.length - end} of ${text.length} characters are not shown]`
    return { text: `${text.slice(0, end)}${cut}${note}`, ...parts, failed, truncated: true, durationMs }
  }
}

const OUTCOME_UNKNOWN: Recovery = {
  outcome: 'unknown',
  text:
    'unknown: the service stopped while this call was running, so it may or may not have had its effect. ' +
    'It was not run again. Check before you repeat it.',
}

function isAnswer(given: unknown): given is string | ToolAnswer {
  return (
    typeof given === 'string' ||
    (typeof given === 'object' && given !== null && 'text' in given && typeof given.text === 'string')
  )
}

async function invoke<T>(work: () => Promise<T>): Promise<T> {
  return work()
}

/** Why a schema refuses arguments, a line each. */
export function describeIssues(name: string, issues: readonly v.BaseIssue<unknown>[]): string {
  const lines = issues.slice(0, 10).map((issue) => `- ${v.getDotPath(issue) ?? 'arguments'}: ${issue.message}`)
  return `The arguments of "${name}" are not valid:\n${lines.join('\n')}`
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
