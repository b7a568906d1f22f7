import type { AnyRoute } from '../../http/route.ts'
import type { OutboundRequest } from '../../net/fetch.ts'
import type { AnyTool } from '../../tools/tool.ts'
import type { AnyPlugin } from '../define.ts'
import { PluginProblem } from '../definition.ts'

/** Whether a member crosses to the daemon. The compiler asks for every one, so that none is dropped unnoticed. */
type Crossing<T> = { readonly [K in keyof Required<T>]: boolean }

const ROUTE: Crossing<AnyRoute> = {
  method: true,
  path: true,
  summary: true,
  description: true,
  auth: true,
  crossSite: true,
  effect: true,
  cost: true,
  status: true,
  answers: true,
  feed: true,
  produces: true,
  errors: true,
  idempotent: true,
  recall: true,
  keepsAnswer: true,
  shown: true,
  handle: true,
  // What a request is parsed with in the process. The document of the API leaves it open, as it does examples.
  params: true,
  query: true,
  body: true,
  returns: true,
  streams: true,
  example: true,
  callback: true,
  // Questions that the daemon asks before it calls the process, or without waiting for an answer.
  token: false,
  signed: false,
  effectOf: false,
  costOf: false,
  renderError: false,
}
const TOOL: Crossing<AnyTool> = {
  name: true,
  title: true,
  description: true,
  input: true,
  outputSchema: true,
  risk: true,
  effect: true,
  polls: true,
  timeoutSecs: true,
  labels: true,
  refuses: true,
  needs: true,
  run: true,
  assess: false,
  recover: false,
  reports: false,
}
const REQUEST: Crossing<OutboundRequest> = {
  method: true,
  headers: true,
  body: true,
  signal: true,
  headersTimeoutMs: true,
  idleTimeoutMs: true,
  totalTimeoutMs: true,
  maxBytes: true,
  owner: false,
  check: false,
}
const DEFINITION: Crossing<AnyPlugin> = {
  name: true,
  version: true,
  apiVersion: true,
  config: true,
  requires: true,
  outbound: true,
  uses: true,
  reload: true,
  hooks: true,
  migrations: true,
  pages: true,
  setup: true,
  optional: false,
  provides: false,
  sections: false,
  offline: false,
  databaseSidecars: false,
}

/** Refuses a member, with its name and what to do. */
export function notAvailable(member: string): never {
  throw new PluginProblem(
    `${member} is not available with isolation = "worker": leave it out, or set plugins.isolation to "none"`,
  )
}

function refuse<T extends object>(label: string, members: Crossing<T>, given: T): void {
  for (const [member, crosses] of Object.entries(members))
    if (crosses === false && given[member as keyof T] !== undefined) notAvailable(`${label}: ${member}`)
}
/** Throws for a route with a member that does not cross. */
export function checkRoute(route: AnyRoute): void {
  const label = `route ${route.method} ${route.path}`
  refuse(label, ROUTE, route)
  if (route.auth === 'signed') notAvailable(`${label}: auth "signed"`)
}
/** Throws for a tool with a member that does not cross. */
export function checkTool(tool: AnyTool): void {
  refuse(`tool ${tool.name}`, TOOL, tool)
}
/** Throws for a request with a member that does not cross. */
export function checkRequest(request: OutboundRequest): void {
  refuse('ctx.fetch', REQUEST, request)
}

/** What of a definition does not cross to a process of its own; none when the plugin can be isolated. */
export function unsupportedParts(definition: AnyPlugin): readonly string[] {
  const parts = Object.entries(DEFINITION).flatMap(([part, crosses]) => {
    const value = crosses ? undefined : definition[part as keyof AnyPlugin]
    return value !== undefined && Object.keys(value).length > 0 ? [part] : []
  })
  const services = Object.values(definition.requires ?? {}).filter(({ remote }) => remote === undefined)
  return [...parts, ...services.map(({ id }) => `service "${id}"`)]
}
