import { omitUndefined, Refusal } from 'svc/sdk'
import type { Agent, Manifest } from '../../agents/contract.ts'
import type { Inference, ResolvedModel } from '../../providers/contract.ts'
import type { Message } from '../../sessions/contract.ts'

type ModelName = Manifest['fallback_models'][number]

/** The models that may answer for an agent: the one it names, its fallbacks, then those of the daemon, each once. */
export function listModelChoices(inference: Inference, { manifest }: Agent): readonly ModelName[] {
  const own: readonly ModelName[] = [manifest.model, ...manifest.fallback_models]
  const general = inference
    .fallbacks()
    .filter((one) => !own.some(({ provider, model }) => provider === one.provider && model === one.model))
  return [...own, ...general]
}

/** The first model of an agent that can be called now. `from` skips the first ones of the list. */
export async function chooseModel(
  inference: Inference,
  agent: Agent,
  from = 0,
): Promise<{ readonly model: ResolvedModel; readonly index: number }> {
  const choices = listModelChoices(inference, agent)
  let firstError: unknown
  for (const [index, choice] of choices.entries()) {
    if (index < from) continue
    try {
      const { provider, model: name, base_url: baseUrl, api_key_env: apiKeyEnv } = choice
      const model = await inference.resolve({ provider, model: name, ...omitUndefined({ baseUrl, apiKeyEnv }) })
      const own = index === 0 ? agent.manifest.model.context_window : undefined
      return { model: own === undefined ? model : { ...model, contextWindow: own }, index }
    } catch (error) {
      // The first one is what the operator has to look at.
      firstError ??= error
    }
  }
  throw firstError ?? new Refusal('service_unavailable', 'no further model to fall back to')
}

/** What the score of a question is made of. */
export interface Question {
  readonly text: string
  readonly images: number
  /** Questions in the session before this one. */
  readonly earlier: number
}
export type Level = 'simple' | 'medium' | 'complex'

const CHARS_PER_TOKEN = 4
const CODE_LINE_POINTS = 30
const MAX_CODE_LINES = 10
const STEP_POINTS = 25
const MAX_STEPS = 8
const IMAGE_POINTS = 100
const EARLIER_POINTS = 5
const MAX_EARLIER = 20
/** Lines that look like code: a fence, and how a line of a usual language begins or ends. */
const CODE_LINE = new RegExp(
  String.raw`^\s*(?:\`\`\`|(?:def|class|function|func|fn|import|from|const|let|var|public|private|return|select|` +
    String.raw`insert|update|create|#include)\b.*[({;:=<'"])|[{};]\s*$`,
  'i',
)
/** An item of a list of things to do: numbered or with a bullet. */
const STEP_LINE = /^\s*(?:\d{1,3}[.)]|[-*•])\s+\S/

/**
 * Estimates how hard a question is. Decision: the interface names the thresholds and not the score, so a token of the
 * text counts 1, a line of code 30 and at most 300, a step of a list 25 and at most 200, an image 100, each earlier
 * question 5 and at most 100. With the default thresholds of 100 and 500 a sentence is simple, a page or a piece of
 * code is medium, and a task of many steps about code is complex.
 */
export function score({ text, images, earlier }: Question): number {
  let codeLines = 0
  let steps = 0
  for (const line of text.split('\n'))
    if (STEP_LINE.test(line)) steps++
    else if (CODE_LINE.test(line)) codeLines++
  return (
    Math.ceil(text.length / CHARS_PER_TOKEN) +
    CODE_LINE_POINTS * Math.min(codeLines, MAX_CODE_LINES) +
    STEP_POINTS * Math.min(steps, MAX_STEPS) +
    IMAGE_POINTS * images +
    EARLIER_POINTS * Math.min(earlier, MAX_EARLIER)
  )
}

export function levelOf(
  points: number,
  { simple_threshold: simple, complex_threshold: complex }: Manifest['routing'],
): Level {
  if (points < simple) return 'simple'
  return points >= complex ? 'complex' : 'medium'
}

/** Whether the question decides about the model. In mode Stable it does not: the model is pinned. */
export function isRouted({ mode, manifest: { routing } }: Agent): boolean {
  return mode !== 'Stable' && Boolean(routing.simple_model || routing.medium_model || routing.complex_model)
}

/** The agent with the model for the level of its question first; its own model becomes the first fallback. */
export async function routed(agent: Agent, messages: readonly Message[], choose: Inference['choose']): Promise<Agent> {
  const { manifest } = agent
  const { routing, model: own } = manifest
  const level = levelOf(score(questionOf(messages)), routing)
  const named = { simple: routing.simple_model, medium: routing.medium_model, complex: routing.complex_model }[level]
  if (!named) return agent
  const choice =
    own.base_url === undefined ? await choose(named, own.provider) : { provider: own.provider, model: named }
  return withModel(agent, choice, [own, ...manifest.fallback_models])
}

/** The agent with another model and other fallbacks. */
export function withModel(
  agent: Agent,
  choice: { readonly provider: string; readonly model: string },
  fallbacks: Manifest['fallback_models'],
): Agent {
  const { manifest } = agent
  const { model: own } = manifest
  if (choice.provider === own.provider && choice.model === own.model) return agent
  const { base_url, api_key_env, context_window: _, ...rest } = own
  // Address and key of the manifest are those of its provider.
  const connection = choice.provider === own.provider ? omitUndefined({ base_url, api_key_env }) : {}
  return {
    ...agent,
    manifest: { ...manifest, model: { ...rest, ...choice, ...connection }, fallback_models: fallbacks },
  }
}

function questionOf(messages: readonly Message[]): Question {
  const questions = messages.filter(({ role }) => role === 'user')
  const blocks = questions.at(-1)?.blocks ?? []
  const text = blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
  const images = blocks.filter(({ type }) => type === 'image').length
  return { text: text.trim(), images, earlier: Math.max(0, questions.length - 1) }
}
