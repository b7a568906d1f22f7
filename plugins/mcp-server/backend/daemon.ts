import { findNearest, suggest } from 'svc/internal'
import { isObject, Refusal } from 'svc/sdk'
import type { Hooks, Logger, ToolDescription, Tools } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Approvals } from '../../approvals/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Chat, ToolCalls } from '../../chat/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import type { WorkflowInfo, WorkflowRuns } from '../../workflows/contract.ts'
import type { Settings } from '../config.ts'
import type { McpObject, McpRequester } from '../contract.ts'
import type { ExportRegistry, McpChanged } from '../exports.ts'
import { actingAgent } from './acting-agent.ts'
import { agentTool, callAgent } from './agent-tools.ts'
import type { AgentToolDeps } from './agent-tools.ts'
import type { McpBackend, McpCall } from './backend.ts'
import { ToolCaller } from './call-tool.ts'
import { ExportedItems } from './exported-items.ts'
import { namedTools } from './tool-names.ts'
import { WorkflowCaller, workflowTool } from './workflow-tools.ts'

export interface DaemonBackendDeps {
  readonly audit: Pick<Audit, 'write'>
  readonly config: Settings
  readonly version: string
  readonly agents: Agents
  readonly chat: Chat
  readonly sessions: Sessions
  readonly toolCalls: ToolCalls
  readonly tools: Tools
  readonly hooks: Hooks
  readonly exports: ExportRegistry
  readonly log: Pick<Logger, 'debug'>
  readonly approvals: () => Approvals | undefined
  readonly workflows: () => WorkflowRuns | undefined
  readonly now: () => number
  readonly isStopping: () => boolean
}
const AGENT = 'svc_agent_'
const WORKFLOW = 'svc_workflow_'

/** The daemon as a server of MCP: tools of the acting agent, agents, workflows, and what plugins export. */
export class DaemonBackend implements McpBackend {
  readonly info: McpBackend['info']
  readonly instructions =
    'Tools named svc_agent_… send a message to an agent, those named svc_workflow_… run a workflow; all others are ' +
    'tools that the acting agent may use.'
  readonly capabilities = {
    tools: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    prompts: { listChanged: true },
    completions: {},
    logging: {},
  }
  readonly #deps: DaemonBackendDeps
  readonly #toolCaller: ToolCaller
  readonly #workflowCaller: WorkflowCaller
  readonly #items: ExportedItems
  readonly #agentTools: AgentToolDeps

  constructor(deps: DaemonBackendDeps) {
    const { config, hooks } = deps
    this.#deps = deps
    this.info = { name: 'svc', title: 'svc', version: deps.version }
    this.#toolCaller = new ToolCaller({ ...deps, approveByClient: config.approve_by_client }, hooks)
    this.#workflowCaller = new WorkflowCaller(hooks, deps.isStopping)
    this.#items = new ExportedItems(deps.exports, config.page_size)
    this.#agentTools = { ...deps, progressMs: config.progress_ms, progressChars: config.progress_chars }
  }

  async listTools(_params: McpObject, call: McpCall): Promise<McpObject> {
    const agent = await this.#acting(call)
    const [agents, workflows] = await Promise.all([this.#agents(), this.#workflows()])
    return {
      tools: [
        ...this.#usable(agent, call).map(toMcpTool),
        ...[...agents].map(([name, each]) => agentTool(name, each)),
        ...[...workflows].map(([name, each]) => workflowTool(name, each)),
      ],
    }
  }

  async callTool({ name, arguments: args = {} }: McpObject, call: McpCall): Promise<McpObject> {
    const tool = String(name)
    if (tool.startsWith(AGENT)) {
      const agent = (await this.#agents()).get(tool)
      if (agent) return callAgent(this.#agentTools, agent, args, call)
    }
    if (tool.startsWith(WORKFLOW)) {
      const runs = this.#deps.workflows()
      const workflow = (await this.#workflows()).get(tool)
      if (runs && workflow) return this.#workflowCaller.call(runs, workflow, args, call)
    }
    const agent = await this.#acting(call)
    const found = this.#deps.tools.find(tool)
    if (found && isOffered(found, call) && this.#deps.agents.mayUse(agent, found))
      return this.#toolCaller.call(agent, tool, args, call)
    throw await this.#unknownTool(tool, agent, call)
  }

  async listResources(params: McpObject, call: McpCall): Promise<McpObject> {
    return this.#items.listResources(params, await this.#requester(call))
  }
  listResourceTemplates(params: McpObject): Promise<McpObject> {
    return Promise.resolve(this.#items.listTemplates(params))
  }
  async readResource({ uri }: McpObject, call: McpCall): Promise<McpObject> {
    return { contents: await this.#items.read(String(uri), await this.#requester(call)) }
  }
  async listPrompts(params: McpObject, call: McpCall): Promise<McpObject> {
    return this.#items.listPrompts(params, await this.#requester(call))
  }
  async getPrompt({ name, arguments: args }: McpObject, call: McpCall): Promise<McpObject> {
    return this.#items.getPrompt(String(name), isObject(args) ? args : {}, await this.#requester(call))
  }
  async complete(params: McpObject, call: McpCall): Promise<McpObject> {
    return this.#items.complete(params, await this.#requester(call))
  }
  async subscribe(uri: string, call: McpCall): Promise<void> {
    await this.#items.read(uri, await this.#requester(call))
  }
  unsubscribe(): Promise<void> {
    return Promise.resolve()
  }
  onChanged(listener: (changed: McpChanged) => void): () => void {
    return this.#deps.exports.onChanged(listener)
  }

  /** Calls a tool of the daemon for the acting agent, for a backend of its own names. */
  async callAsAgent(tool: string, args: unknown, call: McpCall): Promise<McpObject> {
    return this.#toolCaller.call(await this.#acting(call), tool, args, call)
  }
  /** Whether the acting agent may use this tool. */
  async mayUse(tool: string, call: McpCall): Promise<boolean> {
    const found = this.#deps.tools.find(tool)
    return found !== undefined && this.#deps.agents.mayUse(await this.#acting(call), found)
  }

  /** Throws unless the acting agent may use this tool. */
  async requireTool(tool: string, call: McpCall): Promise<void> {
    if (await this.mayUse(tool, call)) return
    throw new Refusal('invalid_request', `The agent ${(await this.#acting(call)).name} may not use the tool "${tool}"`)
  }
  /** Writes down what a client did in the name of the acting agent where no tool is called. */
  async record(details: string, call: McpCall): Promise<void> {
    const { id } = await this.#acting(call)
    await this.#deps.audit.write({ event: 'tool_invoked', agentId: id, details })
  }

  #acting(call: McpCall): Promise<Agent> {
    return actingAgent(this.#deps.agents, call, this.#deps.config.agent)
  }
  async #requester(call: McpCall): Promise<McpRequester> {
    const agent = await this.#acting(call)
    return { agentId: agent.id, principal: call.principal, signal: call.signal }
  }
  #usable(agent: Agent, call: McpCall): readonly ToolDescription[] {
    const { agents, tools } = this.#deps
    return tools.list().filter((tool) => isOffered(tool, call) && agents.mayUse(agent, tool))
  }
  async #agents(): Promise<ReadonlyMap<string, Agent>> {
    return namedTools(AGENT, await this.#deps.agents.list())
  }
  async #workflows(): Promise<ReadonlyMap<string, WorkflowInfo>> {
    return namedTools(WORKFLOW, (await this.#deps.workflows()?.workflows()) ?? [])
  }

  async #unknownTool(name: string, agent: Agent, call: McpCall): Promise<Refusal> {
    const found = this.#deps.tools.find(name)
    if (found && !isOffered(found, call))
      return new Refusal(
        'invalid_request',
        `"${name}" is a tool of an MCP server, which other daemons use at /mcp/<server> only`,
      )
    if (found) return new Refusal('invalid_request', `The agent ${agent.name} may not use the tool "${name}"`)
    const [agents, workflows] = await Promise.all([this.#agents(), this.#workflows()])
    const names = [...this.#usable(agent, call).map((tool) => tool.name), ...agents.keys(), ...workflows.keys()]
    return new Refusal('invalid_request', `Unknown tool: ${name}${suggest(findNearest(name, names)) || '.'}`)
  }
}

/** Daemons that are MCP servers of each other would offer each other their own tools again, without end. */
function isOffered({ source }: ToolDescription, { isDaemon }: McpCall): boolean {
  return !isDaemon || source?.startsWith('mcp:') !== true
}

const OUTSIDE = 'ExternalNetwork'
function toMcpTool({ name, title, description, input, outputSchema, risk, labels = [] }: ToolDescription): McpObject {
  return {
    name,
    ...(title !== undefined && { title }),
    description,
    inputSchema: { type: 'object', ...input },
    ...(outputSchema && { outputSchema }),
    annotations: {
      readOnlyHint: risk === 'read',
      ...(risk !== 'read' && { destructiveHint: true }),
      openWorldHint: risk === 'execute' || labels.includes(OUTSIDE),
    },
  }
}
