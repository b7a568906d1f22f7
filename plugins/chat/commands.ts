import type { Agents } from '../agents/contract.ts'
import type { Approvals } from '../approvals/contract.ts'
import type { Inference } from '../providers/contract.ts'
import type { Sessions } from '../sessions/contract.ts'
import { answerApproval, listApprovals } from './approval-commands.ts'
import type { Chat, TurnResult } from './contract.ts'

/** What one conversation over a socket has used and switched on. */
export class Conversation {
  readonly agentId: string
  thinking = false
  #turns = 0
  #input = 0
  #output = 0
  #costUsd: number | null = 0
  constructor(agentId: string) { this.agentId = agentId }

  count({ usage, costUsd }: TurnResult): void {
    this.#turns++
    this.#input += usage.input
    this.#output += usage.output
    this.#costUsd = costUsd === null || this.#costUsd === null ? null : this.#costUsd + costUsd
  }
  toText(): string {
    const cost = this.#costUsd === null ? 'cost unknown (no price for a model that was used)' : `$${this.#costUsd.toFixed(4)}`
    return `Since you connected: ${this.#turns} answers, ${this.#input} tokens in, ${this.#output} tokens out, ${cost}.`
  }
}
export interface CommandParts {
  readonly chat: Chat
  readonly agents: Agents
  readonly sessions: Sessions
  readonly inference: Inference
  /** While they are there. */
  readonly approvals: () => Approvals | undefined
}
type Command = (parts: CommandParts, conversation: Conversation, argument: string) => Promise<string> | string

const commands: Readonly<Record<string, { readonly does: string; readonly run: Command }>> = {
  new: {
    does: 'a new, empty session',
    async run({ sessions }, { agentId }) { return `New session ${await sessions.reset(agentId)}.` },
  },
  stop: {
    does: 'cancel the running answer',
    run: ({ chat }, { agentId }) => (chat.stop(agentId) ? 'Agent run cancelled.' : 'No active run.'),
  },
  approvals: { does: 'what of this agent waits for approval', run: ({ approvals }, { agentId }) => listApprovals(approvals(), agentId) },
  approve: { does: '<id>: let exactly this be done, once', run: ({ approvals }, { agentId }, id) => answerApproval(approvals(), agentId, 'approve', id) },
  reject: { does: '<id>: do not let this be done', run: ({ approvals }, { agentId }, id) => answerApproval(approvals(), agentId, 'reject', id) },
  usage: { does: 'tokens and cost since you connected', run: (_parts, conversation) => conversation.toText() },
  think: {
    does: 'switch extended thinking on or off',
    run(_parts, conversation, argument) {
      conversation.thinking = argument === 'on' ? true : argument === 'off' ? false : !conversation.thinking
      return `Extended thinking is ${conversation.thinking ? 'on' : 'off'} for models that can.`
    },
  },
  model: {
    does: 'the model of this agent',
    async run({ agents, inference }, { agentId }, argument) {
      const { model } = (await agents.require(agentId)).manifest
      const resolved = await inference.resolve({
        provider: model.provider, model: model.model,
        ...(model.base_url === undefined ? {} : { baseUrl: model.base_url }), ...(model.api_key_env === undefined ? {} : { apiKeyEnv: model.api_key_env }),
      })
      const now = `The model is ${resolved.model} by ${resolved.provider}.`
      return argument === '' ? now : `${now} It cannot be changed from the chat; use PUT /api/agents/${agentId}/model.`
    },
  },
  models: {
    does: 'the default models of the providers that can be used',
    run({ inference }) {
      const usable = inference.providers().filter(({ authStatus }) => authStatus !== 'missing')
      return usable.length === 0 ? 'No provider can be used now.' : usable.map(({ name, defaultModel }) => `${name}: ${defaultModel}`).join('\n')
    },
  },
  providers: {
    does: 'the providers and whether they have a key',
    run: ({ inference }) => inference.providers().map(({ name, title, authStatus }) => `${name} (${title}): ${authStatus.replaceAll('_', ' ')}`).join('\n'),
  },
  compact: { does: 'summarise older messages', run: () => 'Compaction is not available in this version. /new begins an empty session.' },
  help: { does: 'this list', run: () => Object.entries(commands).map(([name, { does }]) => `/${name}: ${does}`).join('\n') },
}
const aliases: Readonly<Record<string, string>> = { reset: 'new' }

/** Whether a message is a command: a slash and a word, so that a path is not taken for one. */
export function isCommand(text: string): boolean { return /^\/[a-zA-Z]+(\s|$)/.test(text) }

/** The answer to a slash command. Throws what the service behind it throws. */
export async function runCommand(parts: CommandParts, conversation: Conversation, text: string): Promise<string> {
  const [word = '', ...rest] = text.slice(1).trim().split(/\s+/)
  const name = word.toLowerCase()
  const known = aliases[name] ?? name
  const command = Object.hasOwn(commands, known) ? commands[known] : undefined
  return command ? command.run(parts, conversation, rest.join(' ')) : `Unknown command /${word.slice(0, 50)}. /help lists the commands.`
}
