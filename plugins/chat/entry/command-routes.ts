import * as v from 'valibot'
import { findNearest, orAbsent, suggest } from 'svc/internal'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../../agents/contract.ts'
import type { CommandSurface, SlashCommands } from '../contract.ts'
import { SURFACES } from './command-registry.ts'
import { Conversation, isCommand } from './conversation.ts'
import type { CommandDeps } from './conversation.ts'
import { checkSession } from './message-routes.ts'

const Item = v.object({
  cmd: v.string(),
  desc: v.string(),
  name: v.string(),
  aliases: v.array(v.string()),
  description: v.string(),
  category: v.pipe(
    v.string(),
    v.description('conversation, model, approvals, information, or plugin for another one.'),
  ),
  requires_agent: v.pipe(v.boolean(), v.description('Whether it is about the agent of the conversation.')),
})
const Surface = v.picklist([...SURFACES, 'all'])
const CommandBody = v.object({
  command: v.pipe(
    v.string('Expected text'),
    v.trim(),
    v.maxLength(2000, 'at most 2000 characters'),
    v.transform((text) => (text.startsWith('/') ? text : `/${text}`)),
    v.check(isCommand, 'must be a slash and a word, such as /usage'),
  ),
  session_id: orAbsent(v.pipe(v.string(), v.uuid('Invalid session ID'), v.toLowerCase())),
  thinking: orAbsent(v.boolean()),
  surface: v.optional(v.pipe(v.picklist(['web', 'cli']), v.description('Whose commands are known.')), 'web'),
})
const CommandAnswer = v.object({
  content: v.string(),
  /** Where the conversation goes on. */
  session_id: v.string(),
  thinking: v.nullable(v.boolean()),
  /** The turn that a command asked for; `GET /api/turns/{id}` tells what comes of it. */
  turn_id: v.optional(v.string()),
})

const loadCommands = () => import('./commands.ts')

/** For other plugins. */
export function slashCommands(deps: CommandDeps): SlashCommands {
  return {
    async run({ agentId, sessionId, principal }, text) {
      const { runCommand } = await loadCommands()
      const conversation = new Conversation(agentId, principal, sessionId)
      conversation.surface = 'channel'
      const answer = await runCommand(deps, conversation, text)
      return typeof answer === 'string' ? answer : `The message is asked again, as turn ${answer.id}.`
    },
    async findSession(agentId, reference) {
      const { findSession } = await import('./session-commands.ts')
      return findSession(await deps.sessions.list(agentId), reference)
    },
    add: (command) => deps.commands.add(command),
    added: () => deps.commands.list('channel'),
  }
}

/** Slash commands for clients that have no socket. */
export function commandRoutes(deps: CommandDeps): readonly AnyRoute[] {
  return [listRoute(deps), readRoute(deps), runRoute(deps)]
}

/** In the forms that clients ask for. */
async function listItems(
  { commands }: CommandDeps,
  surface: CommandSurface | 'all',
): Promise<v.InferOutput<typeof Item>[]> {
  const { listCommands } = await loadCommands()
  return listCommands(commands, surface).map(({ name, takes, does, aliases, category, needsAgent }) => {
    const description = takes === undefined ? does : `${takes}: ${does}`
    return { cmd: `/${name}`, desc: description, name, aliases, description, category, requires_agent: needsAgent }
  })
}

function listRoute(deps: CommandDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/commands',
    summary: 'List the slash commands of a conversation',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    query: v.object({
      surface: v.optional(v.pipe(Surface, v.description('web, cli, channel (chats of channels), or all.')), 'all'),
    }),
    returns: v.object({ surface: Surface, commands: v.array(Item) }),
    handle: async ({ query: { surface } }) => ({ surface, commands: await listItems(deps, surface) }),
  })
}
function readRoute(deps: CommandDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/commands/:name',
    summary: 'Read a slash command',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: v.object({ name: v.pipe(v.string(), v.maxLength(50)) }),
    returns: Item,
    errors: ['not_found'],
    async handle({ params }) {
      const items = await listItems(deps, 'all')
      const name = params.name.replace(/^\//, '').toLowerCase()
      const found = items.find((each) => each.name === name || each.aliases.includes(name))
      if (!found) {
        const names = items.map((each) => each.name)
        throw new Refusal('not_found', `No command /${name}${suggest(findNearest(name, names))}`)
      }
      return found
    },
  })
}

function runRoute(deps: CommandDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/agents/:id/commands',
    summary: 'Run a slash command',
    description:
      'Without `session_id` it is for the active session of the agent. ' +
      '`thinking` is what the conversation has switched on; the answer says what it is afterwards.',
    auth: 'bearer',
    effect: 'conversation',
    cost: 30,
    params: AgentParams,
    body: CommandBody,
    returns: CommandAnswer,
    errors: [
      'agent_not_found',
      'session_not_found',
      'approval_not_found',
      'turn_not_found',
      'conflict',
      'rate_limit',
      'service_unavailable',
    ],
    idempotent: true,
    example: { body: { command: '/usage' } },
    async handle({ params, body, principal, effectId }) {
      const agent = await deps.agents.require(params.id)
      if (body.session_id !== undefined) await checkSession(deps.sessions, agent, body.session_id)
      const conversation = new Conversation(agent.id, principal, body.session_id)
      conversation.thinking = body.thinking
      conversation.surface = body.surface
      conversation.entryPoint = 'rest'
      conversation.effectId = effectId
      const { runCommand } = await loadCommands()
      const answer = await runCommand(deps, conversation, body.command)
      return {
        ...(typeof answer === 'string'
          ? { content: answer }
          : { content: `The message is asked again, as turn ${answer.id}.`, turn_id: answer.id }),
        session_id: conversation.sessionId ?? (await deps.agents.require(agent.id)).sessionId,
        thinking: conversation.thinking ?? null,
      }
    },
  })
}
