import type { CompletionRequest, Turn } from 'svc/providers'
import { omitUndefined } from 'svc/sdk'
import type { Hooks, ToolDescription, Tools } from 'svc/sdk'
import type { Agent, Agents, Manifest } from '../../agents/contract.ts'
import type { Catalog } from '../../catalog/contract.ts'
import type { ResolvedModel } from '../../providers/contract.ts'
import { PromptBuilt, SystemPromptBuilt } from '../contract.ts'
import type { ContextAddition } from '../contract.ts'
import { isSound } from '../safety/sound-history.ts'
import type { LiveTurn, TurnOptions } from '../turn/live-turn.ts'
import type { TurnProgress } from '../turn/progress.ts'
import { instruction } from '../turn/response-format.ts'
import { untagReplay } from './history.ts'
import { fit } from './window.ts'

export interface RequestDeps {
  readonly hooks: Hooks
  readonly catalog: () => Catalog | undefined
  /** Models that refused images of earlier messages, as `provider/model`. */
  readonly modelsWithoutVision: Set<string>
}
/** The turn that a request is made for. */
export interface RequestContext {
  readonly live: LiveTurn
  readonly agent: Agent
  readonly progress: TurnProgress
  readonly tools: readonly ToolDescription[]
}

/**
 * The request for one call of a model: the history, repaired and with the texts of the manifest, the system prompt and
 * the tools, within the window of the model.
 */
export async function buildRequest(
  deps: RequestDeps,
  { live, agent, progress, tools }: RequestContext,
  turns: readonly Turn[],
  model: ResolvedModel,
): Promise<CompletionRequest> {
  const { manifest } = agent
  const { options, format } = live
  const { compactedTurns, windowShare } = progress
  const { extra_params: extra, system_prompt: rules } = manifest.model
  const all = compactedTurns ? [...compactedTurns.turns, ...turns.slice(compactedTurns.count)] : turns
  const injected = inject(rules, await repaired(all), [
    ...manifest.context_injection,
    ...progress.context.map(toInjection),
  ])
  const hidden = hasOldImages(injected.turns) && (await cannotSee(deps, model))
  const shown = hidden ? withoutOldImages(injected.turns) : injected.turns
  const instructions = options.instructions === undefined ? '' : `\n\n${options.instructions}`
  const { text: system } = await deps.hooks.apply(SystemPromptBuilt, { agent, text: injected.system })
  const request = await deps.hooks.apply(PromptBuilt, {
    model: model.model,
    system: system + instructions + (format ? instruction(format) : ''),
    turns: untagReplay(model, shown),
    tools,
    maxTokens: options.maxTokens ?? manifest.model.max_output_tokens ?? manifest.model.max_tokens,
    temperature: options.temperature ?? manifest.model.temperature,
    ...omitUndefined({
      thinking: wantsThinking(options, agent),
      responseFormat: format,
      extra: Object.keys(extra).length > 0 ? extra : undefined,
    }),
  })
  return fit(request, Math.floor(model.contextWindow * windowShare))
}

/** Most histories need no repair: its code is loaded by the first one. */
async function repaired(turns: readonly Turn[]): Promise<readonly Turn[]> {
  // The list of a turn goes on growing.
  if (isSound(turns)) return turns.slice()
  const { repair } = await import('../safety/history-repair.ts')
  return repair(turns).turns
}

/** The tools of an agent, kept as long as neither the agent nor the list of tools changes. */
const offered = new WeakMap<
  Agent,
  { readonly all: readonly ToolDescription[]; readonly own: readonly ToolDescription[] }
>()

/** The tools that are described to the model. */
export function offeredTools(agent: Agent, tools: Tools, agents: Agents): readonly ToolDescription[] {
  if (agent.manifest.capabilities.tools.length === 0) return []
  const all = tools.list()
  const known = offered.get(agent)
  if (known?.all === all) return known.own
  const own = all.filter((tool) => agents.mayUse(agent, tool))
  offered.set(agent, { all, own })
  return own
}

/** Whether a turn asks its model to think; `undefined` leaves that to the model. */
function wantsThinking(options: TurnOptions, { manifest }: Agent): boolean | undefined {
  return options.thinking ?? (manifest.thinking === undefined ? undefined : manifest.thinking['enabled'] !== false)
}
/** Whether the model's reasoning is kept and streamed. When off, it is not shown, even if the model reasons anyway. */
export function reasoningPolicy(
  options: TurnOptions,
  agent: Agent,
): { readonly kept: boolean; readonly streamed: boolean } {
  const kept = wantsThinking(options, agent) !== false
  const streamed = kept && (options.thinking === true || agent.manifest.thinking?.['stream_thinking'] !== false)
  return { kept, streamed }
}

export interface Injected {
  readonly system: string
  readonly turns: readonly Turn[]
}

/**
 * The request with the texts that the manifest adds to every conversation, `context_injection` (API facts 2.1).
 * Decision: `system` goes after the system prompt, `before_user` right before the question, `after_reset` after the
 * system prompt until the first answer. `condition` is a text that the question must contain, in upper or lower case.
 * The session does not store these texts.
 */
export function inject(system: string, turns: readonly Turn[], injections: Manifest['context_injection']): Injected {
  if (injections.length === 0) return { system, turns }
  const at = turns.findLastIndex((turn) => turn.role === 'user')
  const question = turns[at]
  const questionText =
    question?.role === 'user'
      ? question.parts
          .map((part) => (part.type === 'text' ? part.text : ''))
          .join('\n')
          .toLowerCase()
      : ''
  const fresh = !turns.some((turn) => turn.role === 'assistant')
  const matching = injections.filter(
    ({ condition, position }) =>
      questionText.includes((condition ?? '').toLowerCase()) && (position !== 'after_reset' || fresh),
  )
  const systemTexts = matching.filter(({ position }) => position !== 'before_user').map(toText)
  const before = matching.filter(({ position }) => position === 'before_user').map(toText)
  return {
    system: [system, ...systemTexts].filter((text) => text !== '').join('\n\n'),
    turns:
      question?.role !== 'user' || before.length === 0
        ? turns
        : turns.with(at, { ...question, parts: [{ type: 'text', text: before.join('\n\n') }, ...question.parts] }),
  }
}
const toInjection = ({ text }: ContextAddition): Manifest['context_injection'][number] => ({
  content: text,
  position: 'before_user',
})
const toText = ({ name, content }: Manifest['context_injection'][number]): string =>
  name === undefined || name === '' ? content : `[${name}]\n${content}`

const IMAGE_NOTE = '[An image was here. This model cannot read images.]'

/** Whether a model refuses images. */
async function cannotSee({ modelsWithoutVision, catalog }: RequestDeps, model: ResolvedModel): Promise<boolean> {
  if (modelsWithoutVision.has(`${model.provider}/${model.model}`)) return true
  const models = catalog()
  await models?.ready()
  return models?.find(model.provider, model.model)?.supports.vision === false
}

/** Whether a user's message before the last one holds an image. */
export function hasOldImages(turns: readonly Turn[]): boolean {
  const last = turns.findLastIndex(({ role }) => role === 'user')
  return turns.some((turn, at) => at < last && turn.role === 'user' && turn.parts.some(({ type }) => type === 'image'))
}

/** Whether the last message of the user holds an image. */
export function asksAboutImage(turns: readonly Turn[]): boolean {
  const last = turns.findLast((turn) => turn.role === 'user')
  return last?.parts.some(({ type }) => type === 'image') ?? false
}

/**
 * The same turns, with a note in place of each image of an earlier message: a model without vision would refuse them
 * all.
 */
function withoutOldImages(turns: readonly Turn[]): readonly Turn[] {
  const last = turns.findLastIndex(({ role }) => role === 'user')
  return turns.map((turn, at) => {
    if (at >= last || turn.role !== 'user') return turn
    return {
      ...turn,
      parts: turn.parts.map((part) => (part.type === 'image' ? { type: 'text', text: IMAGE_NOTE } : part)),
    }
  })
}
