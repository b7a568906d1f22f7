import type { Manifest } from './contract.ts'
import { mayUse } from './tool-rights.ts'

/** Limits for which 0 means "no limit". */
const unlimitedAtZero = [
  'max_llm_tokens_per_hour',
  'max_network_bytes_per_hour',
  'max_cost_per_hour_usd',
  'max_cost_per_day_usd',
  'max_cost_per_month_usd',
] as const

/**
 * The first right of a child that its parent lacks, as a sentence; `undefined` when there is none (security facts
 * 1.12). A list that the child leaves out is empty, not inherited, and its `self.*` means its own names.
 */
export function exceeds(parent: Manifest, child: Manifest): string | undefined {
  const mine = parent.capabilities
  const requested = child.capabilities
  return (
    firstOutside('capabilities.tools', requested.tools, mine.tools) ??
    toolLists(parent, child) ??
    firstOutside('capabilities.network', requested.network.map(lower), mine.network.map(lower)) ??
    firstOutside('capabilities.memory_read', requested.memory_read, mine.memory_read) ??
    firstOutside('capabilities.memory_write', requested.memory_write, mine.memory_write) ??
    firstOutside('capabilities.shell', requested.shell, mine.shell, sameCommand) ??
    firstOutside('capabilities.agent_message', requested.agent_message, mine.agent_message) ??
    firstOutside('capabilities.ofp_connect', requested.ofp_connect, mine.ofp_connect) ??
    flag('capabilities.agent_spawn', requested.agent_spawn, mine.agent_spawn) ??
    flag('capabilities.ofp_discover', requested.ofp_discover, mine.ofp_discover) ??
    named('skills', child, parent, 'skills_disabled') ??
    named('mcp_servers', child, parent, 'mcp_disabled') ??
    wakes(parent, child) ??
    environment(parent, child) ??
    policies(parent, child) ??
    numbers(parent, child)
  )
}

/**
 * Whether every name that one pattern matches is matched by the other too. Sound, not complete: equal, `*`, or a parent
 * with its only star at one end and the child's literal part inside it. Anything else is refused: matching one pattern
 * against another as if it were a name gives wrong answers in both directions.
 */
export function containsPattern(parent: string, child: string): boolean {
  if (parent === child || parent === '*') return true
  const star = parent.indexOf('*')
  if (star < 0 || star !== parent.lastIndexOf('*')) return false
  if (star === parent.length - 1) return literalStart(child).startsWith(parent.slice(0, -1))
  if (star === 0) return literalEnd(child).endsWith(parent.slice(1))
  return false
}
const literalStart = (pattern: string): string => pattern.split('*', 1)[0] ?? ''
const literalEnd = (pattern: string): string => pattern.slice(pattern.lastIndexOf('*') + 1)

/** What a command pattern allows depends on all its words: `python3 *` allows no inline code, `python3 -c *` does. */
const sameCommand = (parent: string, child: string): boolean => parent.trim() === '*' || parent === child
const lower = (text: string): string => text.toLowerCase()

function firstOutside(
  right: string,
  requested: readonly string[],
  held: readonly string[],
  contains = containsPattern,
): string | undefined {
  const outside = requested.find((each) => !held.some((one) => contains(one, each)))
  return outside === undefined ? undefined : `${right}: "${outside}"`
}
const flag = (right: string, requested: boolean, held: boolean): string | undefined =>
  requested && !held ? `${right}: true` : undefined

/** The lists that narrow the tools count as well: what the parent's lists hold back, the child's must. */
function toolLists(parent: Manifest, child: Manifest): string | undefined {
  if (child.tools_disabled || child.capabilities.tools.length === 0) return undefined
  if (parent.tools_disabled) return 'tools: the parent has none'
  const open = child.tool_allowlist.length > 0 ? child.tool_allowlist : child.capabilities.tools
  const outside =
    parent.tool_allowlist.length === 0 ? undefined : firstOutside('tool_allowlist', open, parent.tool_allowlist)
  const unblocked = parent.tool_blocklist.find(
    (each) => !child.tool_blocklist.some((one) => containsPattern(one, each)),
  )
  return (
    outside ??
    (unblocked === undefined ? undefined : `tool_blocklist: does not block "${unblocked}" as the parent's does`)
  )
}

/** An empty list means all of them, unless the feature is switched off. */
function named(
  what: 'skills' | 'mcp_servers',
  child: Manifest,
  parent: Manifest,
  off: 'skills_disabled' | 'mcp_disabled',
): string | undefined {
  if (child[off]) return undefined
  if (parent[off]) return `${what}: the parent has none`
  if (parent[what].length === 0) return undefined
  if (child[what].length === 0) return `${what}: all of them`
  return firstOutside(what, child[what], parent[what])
}

/** Who may not make a schedule or a trigger for itself gives none to its child, unless it is its own. */
function wakes(parent: Manifest, child: Manifest): string | undefined {
  const may = (name: string): boolean => mayUse(parent, 'full', { name, risk: 'write' })
  const { schedule } = child
  if (schedule !== 'reactive' && !same(parent.schedule, schedule)) {
    if ((schedule.periodic || schedule.continuous) && !may('schedule_create'))
      return 'schedule: it needs schedule_create'
    if (schedule.proactive && !may('trigger_create')) return 'schedule: it needs trigger_create'
  }
  if (child.triggers.length > 0 && !same(parent.triggers, child.triggers) && !may('trigger_create'))
    return 'triggers: they need trigger_create'
  return undefined
}

/** Decides where keys are sent: a child that names both a variable and an address could send any secret anywhere. */
function environment(parent: Manifest, child: Manifest): string | undefined {
  const known = new Set([parent.model, ...parent.fallback_models].map(address))
  const outside = [child.model, ...child.fallback_models].map(address).find((own) => own !== EMPTY && !known.has(own))
  return outside !== undefined ? 'model.base_url and model.api_key_env' : undefined
}
const address = (model: object): string => {
  const { base_url, api_key_env } = model as { base_url?: unknown; api_key_env?: unknown }
  return JSON.stringify([base_url ?? null, api_key_env ?? null])
}
const EMPTY = address({})

/** Tables that narrow or widen what tools do are handed on as they are. */
function policies(parent: Manifest, child: Manifest): string | undefined {
  if (parent.exec_policy !== undefined && !same(parent.exec_policy, child.exec_policy))
    return "exec_policy: differs from the parent's"
  if (!same(parent.tools, child.tools)) return "tools: differs from the parent's"
  if (parent.metadata['approval'] !== undefined && !same(parent.metadata['approval'], child.metadata['approval']))
    return "metadata.approval: differs from the parent's"
  for (const key of ['workspace', 'workspaces'] as const) {
    const requested = value(child, key)
    if (requested !== undefined && !isEmpty(requested) && !same(requested, value(parent, key)))
      return `${key}: another folder than the parent's`
  }
  return undefined
}
const value = (manifest: object, key: string): unknown => Object.entries(manifest).find(([name]) => name === key)?.[1]
const isEmpty = (table: unknown): boolean =>
  typeof table === 'object' && table !== null && Object.keys(table).length === 0
const same = (a: unknown, b: unknown): boolean => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b))
function sorted(table: unknown): unknown {
  if (Array.isArray(table)) return table.map(sorted)
  if (typeof table !== 'object' || table === null) return table
  return Object.entries(table)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, each]) => [key, sorted(each)])
}

function numbers(parent: Manifest, child: Manifest): string | undefined {
  for (const key of unlimitedAtZero) {
    const held = parent.resources[key] === 0 ? Infinity : parent.resources[key]
    const requested = child.resources[key] === 0 ? Infinity : child.resources[key]
    if (requested > held)
      return `resources.${key}: ${requested === Infinity ? 'no limit' : requested} is more than ${held}`
  }
  const atMost = (right: string, requested: number, held: number): string | undefined =>
    requested > held ? `${right}: ${requested} is more than ${held}` : undefined
  return (
    atMost(
      'resources.max_tool_calls_per_minute',
      child.resources.max_tool_calls_per_minute,
      parent.resources.max_tool_calls_per_minute,
    ) ??
    atMost('autonomous.max_iterations', child.autonomous.max_iterations, parent.autonomous.max_iterations) ??
    atMost('model.max_tokens', child.model.max_tokens, parent.model.max_tokens)
  )
}
