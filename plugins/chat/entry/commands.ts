import { checkAuthority, findNearest, suggest } from 'svc/internal'
import { omitUndefined } from 'svc/sdk'
import type { Effect } from 'svc/sdk'
import type { UsageTotals } from '../../usage/contract.ts'
import type { CommandSurface } from '../contract.ts'
import { ALIASES, BUILT_IN } from './command-registry.ts'
import type { BuiltIn, CommandRegistry } from './command-registry.ts'
import { describe, describeUndo } from './compact-routes.ts'
import type { CommandAnswer, CommandDeps, Conversation } from './conversation.ts'
import { explain } from '../turn/failure.ts'

type Command = (
  deps: CommandDeps,
  conversation: Conversation,
  argument: string,
) => Promise<CommandAnswer> | CommandAnswer

interface Entry {
  /** What may follow its name. */
  readonly takes?: string
  readonly does: string
  readonly category?: 'model' | 'approvals' | 'information'
  /** It is not about the agent of the conversation. */
  readonly isGeneral?: boolean
  readonly run: Command
  /** What is left behind, as of a route; a conversation when it is not said. */
  effectOf?(argument: string): Effect
}
const NOTHING_FAILED = 'No message of this session has failed.'
const commands: Readonly<Record<BuiltIn, Entry>> = {
  new: {
    does: 'a new, empty session',
    async run({ sessions }, conversation) {
      return `New session ${conversation.moved(await sessions.reset(conversation.agentId, conversation.effectId))}.`
    },
  },
  sessions: {
    takes: '[number]',
    does: 'the sessions of this agent; with a number, a label or an id, go back to that one',
    async run({ sessions, agents }, conversation, reference) {
      const agent = await agents.require(conversation.agentId)
      const { countMessages, listSessions, switchSession, titleOf } = await import('./session-commands.ts')
      if (reference === '') return listSessions(sessions, agent, conversation.sessionId ?? agent.sessionId)
      const session = await switchSession({ sessions, agents }, agent.id, reference)
      conversation.moved(session.id)
      return `Back in session ${session.id}: ${titleOf(session)}, ${countMessages(session)}.`
    },
  },
  status: {
    category: 'information',
    does: 'who answers here, and what it does now',
    effectOf: () => 'read',
    async run({ agents, chat }, { agentId, sessionId }) {
      const agent = await agents.require(agentId)
      const session = sessionId ?? agent.sessionId
      return `Agent: ${agent.name} (${agent.state})\nSession: ${session}${(await chat.busy(session)) ? ', answering now' : ''}`
    },
  },
  agents: {
    category: 'information',
    isGeneral: true,
    does: 'the agents there are',
    effectOf: () => 'read',
    async run({ agents }, { agentId }) {
      const all = await agents.list()
      return all.map(({ id, name, state }) => `${id === agentId ? '*' : ' '} ${name} (${state})`).join('\n')
    },
  },
  compact: {
    takes: '[undo]',
    does: 'summarise older messages; with undo, take the newest summary back',
    async run({ chat }, { agentId, sessionId }, argument) {
      if (argument.toLowerCase() === 'undo') return `${describeUndo(await chat.undoCompaction(agentId, sessionId))}.`
      return `${describe(await chat.compact(agentId, sessionId))}.`
    },
  },
  model: {
    category: 'model',
    takes: '[name]',
    does: 'the model of this agent; with a name, use that one',
    effectOf: (argument) => (argument === '' ? 'read' : 'lasting'),
    async run({ agents, inference }, { agentId, principal }, argument) {
      const { warnings } = argument === '' ? { warnings: [] } : await agents.setModel(agentId, argument)
      const doubts = warnings.map((warning) => ` Note: ${warning}.`).join('')
      const { model } = (await agents.require(agentId)).manifest
      try {
        const resolved = await inference.resolve({
          provider: model.provider,
          model: model.model,
          ...omitUndefined({ baseUrl: model.base_url, apiKeyEnv: model.api_key_env }),
        })
        // The requested model is not available, and another one answers in its place.
        if (warnings.length > 0 && model.model !== 'default' && resolved.model !== model.model)
          return `The model is set to ${model.model}, but ${resolved.model} by ${resolved.provider} answers.${doubts}`
        return `The model is ${argument === '' ? '' : 'now '}${resolved.model} by ${resolved.provider}.${doubts}`
      } catch (error) {
        const why = explain(error)
        if (why === undefined) throw error
        const chosen = `The model is ${argument === '' ? '' : 'now '}${model.model} by ${model.provider}`
        // Why is for the operator: it names settings.
        const reason = principal.kind === 'channel' ? ' now.' : `: ${why}${doubts}`
        return `${chosen}, which cannot be used${reason}`
      }
    },
  },
  stop: {
    does: 'cancel the running answer of this session',
    async run({ chat, agents }, { agentId, sessionId }) {
      const session = sessionId ?? (await agents.require(agentId)).sessionId
      return (await chat.stop(agentId, session)) ? 'Agent run cancelled.' : 'No active run.'
    },
  },
  retry: {
    does: 'send the last message that failed again',
    async run(deps, conversation) {
      const failed = await lastFailed(deps, conversation)
      return failed === undefined ? NOTHING_FAILED : deps.chat.retry(failed, conversation.entryPoint)
    },
  },
  drop: {
    does: 'take away the last message that failed',
    async run(deps, conversation) {
      const failed = await lastFailed(deps, conversation)
      if (failed === undefined) return NOTHING_FAILED
      await deps.chat.drop(failed)
      return 'The message is dropped.'
    },
  },
  approvals: {
    category: 'approvals',
    does: 'what of this agent waits for approval',
    run: async ({ approvals }, { agentId }) =>
      (await import('./approval-commands.ts')).listApprovals(approvals(), agentId),
  },
  approve: {
    category: 'approvals',
    takes: '<id>',
    does: 'let exactly this be done, once',
    run: async ({ approvals }, conversation, id) =>
      (await import('./approval-commands.ts')).answerApproval(approvals(), conversation, 'approve', id),
  },
  reject: {
    category: 'approvals',
    takes: '<id> [reason]',
    does: 'do not let this be done',
    run: async ({ approvals }, conversation, id) =>
      (await import('./approval-commands.ts')).answerApproval(approvals(), conversation, 'reject', id),
  },
  usage: {
    category: 'information',
    does: 'tokens and cost of this session and of this agent',
    async run({ agents, usage }, { agentId, sessionId: chosen }) {
      const ledger = usage()
      if (!ledger) return 'Nobody counts: the usage plugin is not loaded.'
      const sessionId = chosen ?? (await agents.require(agentId)).sessionId
      const [session, agent] = await Promise.all([ledger.totals(agentId, sessionId), ledger.totals(agentId)])
      return `This session: ${toText(session)}\nThis agent: ${toText(agent)}`
    },
  },
  think: {
    category: 'model',
    takes: '[on|off]',
    does: 'extended thinking, for models that can',
    run(_deps, conversation, argument) {
      const setting = argument.toLowerCase()
      if (!['', 'on', 'off'].includes(setting)) return 'Say /think on or /think off.'
      conversation.thinking = setting === '' ? conversation.thinking !== true : setting === 'on'
      return `Extended thinking is ${conversation.thinking ? 'on' : 'off'} for models that can.`
    },
  },
  models: {
    category: 'model',
    isGeneral: true,
    takes: '[provider]',
    does: 'the models of the providers that can be used; with a provider, all of its models',
    run: async ({ inference, catalog }, _conversation, provider) =>
      (await import('./model-commands.ts')).listModels(inference, catalog(), provider),
  },
  providers: {
    category: 'model',
    isGeneral: true,
    does: 'the providers, whether they have a key, and how many models of theirs are known',
    run: async ({ inference, catalog }) => (await import('./model-commands.ts')).listProviders(inference, catalog()),
  },
  help: {
    category: 'information',
    isGeneral: true,
    does: 'this list',
    run: ({ commands: registry }, { surface }) =>
      listCommands(registry, surface)
        .map(({ name, takes, does }) => `/${name}${takes === undefined ? '' : ` ${takes}`}: ${does}`)
        .join('\n'),
  },
}
async function lastFailed({ agents, sessions }: CommandDeps, { agentId, sessionId }: Conversation) {
  return sessions.lastFailed(sessionId ?? (await agents.require(agentId)).sessionId)
}

function toText({ calls, inputTokens, outputTokens, costUsd, unpriced }: UsageTotals): string {
  const cost =
    unpriced === 0
      ? `$${costUsd.toFixed(4)}`
      : `${costUsd > 0 ? `$${costUsd.toFixed(4)} and ` : ''}unknown cost of ${unpriced} calls`
  return `${calls} calls of a model, ${inputTokens} tokens in, ${outputTokens} tokens out, ${cost}.`
}

/** Those of this plugin and those that others added. */
export function listCommands(registry: CommandRegistry, surface: CommandSurface | 'all') {
  const builtIn = BUILT_IN.map((name) => {
    const { takes, does, category = 'conversation', isGeneral = false } = commands[name]
    const aliases = Object.keys(ALIASES).filter((alias) => ALIASES[alias] === name)
    return { name, takes, does, aliases, category, needsAgent: !isGeneral }
  })
  const added = registry.list(surface).map(({ name, takes, description: does, aliases = [] }) => ({
    name,
    takes,
    does,
    aliases: [...aliases],
    category: 'plugin',
    needsAgent: true,
  }))
  return [...builtIn, ...added]
}

/** The answer to a slash command. Throws what the service behind it throws. */
export async function runCommand(deps: CommandDeps, conversation: Conversation, text: string): Promise<CommandAnswer> {
  const [word = '', ...rest] = text.slice(1).trim().split(/\s+/)
  const name = word.toLowerCase()
  const argument = rest.join(' ')
  const { agentId, sessionId, principal, surface } = conversation
  const added = deps.commands.find(name, surface)
  if (added) {
    checkAuthority(principal, added.effectOf(argument))
    return added.run({ agentId, sessionId, principal, argument })
  }
  const known = BUILT_IN.find((each) => each === (ALIASES[name] ?? name))
  if (!known) {
    const names = listCommands(deps.commands, surface).map((each) => each.name)
    const nearest = suggest(findNearest(name, names)) || '.'
    return `Unknown command /${word.slice(0, 50)}${nearest} /help lists the commands.`
  }
  const command = commands[known]
  checkAuthority(principal, command.effectOf?.(argument) ?? 'conversation')
  return command.run(deps, conversation, argument)
}
