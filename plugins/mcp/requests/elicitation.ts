import * as v from 'valibot'
import { isObject, Refusal } from 'svc/sdk'
import type { Approvals } from '../../approvals/contract.ts'
import type { Settings } from '../config.ts'
import type { ServerRequest } from '../connection/features.ts'
import type { McpCaller, McpObject } from '../contract.ts'
import { passOn, requireCaller } from './caller.ts'
import type { RequestLimits } from './limits.ts'

const MAX_MESSAGE_CHARS = 2000
const Params = v.object({
  mode: v.optional(v.picklist(['form', 'url']), 'form'),
  message: v.pipe(v.string(), v.maxLength(MAX_MESSAGE_CHARS)),
  requestedSchema: v.optional(v.record(v.string(), v.unknown())),
  url: v.optional(v.pipe(v.string(), v.maxLength(2048))),
})

export interface ElicitationDeps {
  readonly settings: Settings
  readonly limits: RequestLimits
  readonly approvals: () => Approvals | undefined
  /** Throws a `Refusal` for text that addresses a model. */
  readonly refuseInjection: (text: string, what: string) => Promise<void>
}

/** Answers `elicitation/create`: a person fills in the form, or opens the page, as an approval request of the agent. */
export async function elicit(deps: ElicitationDeps, request: ServerRequest): Promise<McpObject> {
  const { settings, limits } = deps
  const { server, signal } = request
  const caller = requireCaller(request)
  const parsed = v.safeParse(Params, request.params)
  if (!parsed.success) throw new Refusal('invalid_request', `elicitation/create: ${parsed.issues[0].message}`)
  const { mode, message, requestedSchema, url } = parsed.output
  // The program at the other end may open what it is told to open.
  const page = mode === 'url' ? webAddress(url) : undefined
  limits.countCall('elicitation', caller, settings.elicitations_per_call, 'elicitations_per_call')
  const passed = canShow(caller, mode) ? passOn(caller, request, 'elicitation') : undefined
  if (passed) return passed
  await deps.refuseInjection(`${message}\n${JSON.stringify(requestedSchema ?? {})}`, `A question of ${server.name}`)
  const approvals = deps.approvals()
  if (!approvals) throw new Refusal('service_unavailable', 'Nobody can be asked: the plugin approvals is not loaded')
  const waiting = AbortSignal.any([signal, caller.signal])
  const { id } = await approvals.request({
    agentId: caller.agentId,
    agentName: caller.agentName,
    turnId: caller.turnId,
    sessionId: caller.sessionId,
    callId: caller.callId,
    // No tool can be called that, so the answer permits none.
    tool: `mcp:${server.name}`,
    action: `mcp:${server.name}`,
    intent:
      mode === 'url'
        ? `have you open a page of the MCP server ${server.name}`
        : `know something for the MCP server ${server.name}`,
    summary: message,
    description: `The server ${server.name} asks this, not the agent. Never give it passwords or keys here.`,
    payload: page === undefined ? { message } : { message, url: page },
    risk: mode === 'url' ? 'high' : 'medium',
    timeoutSecs: settings.elicitation_timeout_secs,
    form: mode === 'url' ? undefined : { schema: requestedSchema ?? {}, title: `For ${server.name}` },
  })
  const answered = caller.waiting?.(`The MCP server ${server.name} waits for your answer`)
  try {
    const { state, content } = await approvals.decision(id, waiting)
    if (state === 'approved')
      return mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { ...content } }
    return { action: state === 'rejected' ? 'decline' : 'cancel' }
  } catch (error) {
    if (waiting.aborted) await approvals.withdrawRequest(id, 'the server does not need it any more')
    throw error
  } finally {
    answered?.()
  }
}

/** Clients of earlier revisions name no modes and can show forms. */
function canShow({ client }: McpCaller, mode: 'form' | 'url'): boolean {
  const abilities = client?.abilities['elicitation']
  return isObject(abilities) && (mode in abilities || (mode === 'form' && !('url' in abilities)))
}

function webAddress(text = ''): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  // What stands before an @ passes for the name of the site.
  if (url && (url.username !== '' || url.password !== ''))
    throw new Refusal('invalid_request', 'elicitation/create: url must not have a user name or password in it')
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url.href
  throw new Refusal('invalid_request', 'elicitation/create: url has to be the address of a web page')
}
