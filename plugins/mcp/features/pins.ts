import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { canonicalJson, readOwnJson, stableId } from 'svc/internal'
import type { Statement } from 'svc/sdk'
import type { Approval, Approvals } from '../../approvals/contract.ts'
import type { McpTool } from '../contract.ts'
import type { Pin, PinStore } from './store.ts'

/** How many changed tools are shown in one request; the others wait for the next one. */
const MAX_SHOWN = 50

interface Definition {
  readonly title?: unknown
  readonly description?: unknown
  readonly inputSchema?: unknown
  readonly outputSchema?: unknown
  readonly annotations?: unknown
}
export function definitionOf({ title, description, inputSchema, outputSchema, annotations }: McpTool): Definition {
  return { title, description, inputSchema, outputSchema, annotations }
}
const fingerprintOf = (tool: McpTool): string =>
  createHash('sha256')
    .update(canonicalJson(definitionOf(tool)))
    .digest('hex')

export interface PinsDeps {
  readonly store: PinStore
  readonly approvals: () => Approvals | undefined
  /** Tools of one server that are remembered; further ones are not used. */
  readonly maxPins: number
  /** Lists the tools again. */
  readonly relist: (server: string) => Promise<void>
}
/**
 * What was approved of the tools of each server. The first list of a server that the operator added counts as approved;
 * a tool that says something else later waits for a person.
 */
export class ToolPins {
  readonly #deps: PinsDeps
  /** The last request about each server. */
  readonly #asked = new Map<string, string>()
  constructor(deps: PinsDeps) {
    this.#deps = deps
  }

  /**
   * The names of the tools that changed since they were approved. New ones are approved with the list they come in, as
   * long as not too many are remembered: a server could give its tools other names for ever.
   */
  async check(server: string, tools: readonly McpTool[]): Promise<ReadonlySet<string>> {
    const known = new Map((await this.#deps.store.pins(server)).map((row) => [row.tool, row]))
    const changed = tools.filter((tool) => {
      const row = known.get(tool.name)
      return row !== undefined && row.fingerprint !== fingerprintOf(tool)
    })
    const unknown = tools.filter(({ name }) => !known.has(name))
    const added = unknown.slice(0, Math.max(0, this.#deps.maxPins - known.size))
    if (added.length > 0) await this.#deps.store.commit(added.map((tool) => this.#pin(server, tool)))
    if (changed.length > 0) await this.#ask(server, changed.slice(0, MAX_SHOWN), known)
    return new Set([...changed, ...unknown.slice(added.length)].map(({ name }) => name))
  }
  /** A person answered. Tools that were approved as they are now are used again. */
  async resolved({ agentId, tool, state, payload, lasting }: Resolved) {
    const parsed = v.safeParse(Payload, payload)
    // A request of an agent, or over the API, names one.
    if (state !== 'approved' || agentId !== '' || !lasting || !parsed.success) return
    const { server, changes } = parsed.output
    if (tool !== toolName(server)) return
    await this.#deps.store.commit(
      changes.map(({ tool: name, after }) => this.#pin(server, { ...(after as object), name } as McpTool)),
    )
    await this.#deps.relist(server)
  }
  async forget(server: string): Promise<void> {
    this.#asked.delete(server)
    await this.#deps.store.forget(server)
  }

  async #ask(server: string, changed: readonly McpTool[], known: ReadonlyMap<string, Pin>): Promise<void> {
    const approvals = this.#deps.approvals()
    if (!approvals) return
    const prints = changed.map(fingerprintOf)
    // The same change is asked once; when nobody answered, again with the next list.
    let id = stableId('mcp-tools', server, ...prints)
    for (let again = 1; (await approvals.find(id))?.state === 'expired' && again < 100; again++)
      id = stableId('mcp-tools', server, ...prints, String(again))
    // One request at a time: a server that changes all the time asks nobody more often than they answer.
    const last = this.#asked.get(server)
    if (last !== undefined && last !== id && (await approvals.find(last))?.state === 'pending') return
    this.#asked.set(server, id)
    const names = changed.map(({ name }) => name).join(', ')
    await approvals.request({
      id,
      agentId: '',
      agentName: server,
      tool: toolName(server),
      action: toolName(server),
      intent: `change ${changed.length === 1 ? 'a tool' : `${changed.length} tools`} that agents use`,
      summary: `The MCP server ${server} says something else of: ${names}`.slice(0, 512),
      description: 'Until it is approved, agents cannot call what changed. Compare what it said before and says now.',
      payload: {
        server,
        changes: changed.map((tool) => ({
          tool: tool.name,
          before: readOwnJson(known.get(tool.name)?.definition ?? '{}'),
          after: definitionOf(tool),
        })),
      },
      risk: 'high',
      lasting: true,
    })
  }
  #pin(server: string, tool: McpTool): Statement {
    return this.#deps.store.pin(server, {
      tool: tool.name,
      fingerprint: fingerprintOf(tool),
      definition: JSON.stringify(definitionOf(tool)),
    })
  }
}

type Resolved = Pick<Approval, 'agentId' | 'tool' | 'state' | 'payload' | 'lasting'>
const toolName = (server: string): string => `mcp:${server}`
const Payload = v.object({
  server: v.string(),
  changes: v.array(v.object({ tool: v.string(), after: v.record(v.string(), v.unknown()) })),
})
