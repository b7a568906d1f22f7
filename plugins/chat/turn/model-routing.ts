import type { Agent, Manifest } from '../../agents/contract.ts'
import type { Inference } from '../../providers/contract.ts'
import type { Message } from '../../sessions/contract.ts'

/** What of a question is counted. */
export interface Question {
  readonly text: string
  readonly images: number
  /** Questions in the session before this one. */
  readonly earlier: number
}
export type Level = 'simple' | 'medium' | 'complex'

const CHARS_PER_TOKEN = 4
const CODE_MARK = 30
const MOST_CODE_MARKS = 10
const STEP = 25
const MOST_STEPS = 8
const IMAGE = 100
const EARLIER = 5
const MOST_EARLIER = 20
/** Lines that look like code: a fence, and how a line of a usual language begins or ends. */
const code =
  /^\s*(?:```|(?:def|class|function|func|fn|import|from|const|let|var|public|private|return|select|insert|update|create|#include)\b.*[({;:=<'"])|[{};]\s*$/i
/** A list of things to do: numbered or with bullets. */
const step = /^\s*(?:\d{1,3}[.)]|[-*•])\s+\S/

/**
 * How hard a question looks (Decision: the interface names the thresholds and not the score): a token of its text counts 1, a line of code 30
 * and at most 300, a step of a list 25 and at most 200, an image 100, each question before it 5 and at most 100. With the usual thresholds of
 * 100 and 500 a sentence is simple, a page or a piece of code medium, and a task of many steps about code complex.
 */
export function score({ text, images, earlier }: Question): number {
  let marks = 0
  let steps = 0
  for (const line of text.split('\n'))
    if (step.test(line)) steps++
    else if (code.test(line)) marks++
  return (
    Math.ceil(text.length / CHARS_PER_TOKEN) +
    CODE_MARK * Math.min(marks, MOST_CODE_MARKS) +
    STEP * Math.min(steps, MOST_STEPS) +
    IMAGE * images +
    EARLIER * Math.min(earlier, MOST_EARLIER)
  )
}

export function levelOf(
  points: number,
  { simple_threshold: simple, complex_threshold: complex }: Manifest['routing'],
): Level {
  return points < simple ? 'simple' : points >= complex ? 'complex' : 'medium'
}

/** Whether the model of an agent depends on what it is asked. In mode Stable it does not: its model is pinned. */
export function isRouted({ mode, manifest: { routing } }: Agent): boolean {
  return mode !== 'Stable' && Boolean(routing.simple_model || routing.medium_model || routing.complex_model)
}

/** The agent as it answers a question: with the model for its level first, and its own model as the first one to fall back to. */
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

/** The agent with another model, and what stands in for that one. */
export function withModel(
  agent: Agent,
  choice: { readonly provider: string; readonly model: string },
  fallbacks: Manifest['fallback_models'],
): Agent {
  const { manifest } = agent
  const { model: own } = manifest
  if (choice.provider === own.provider && choice.model === own.model) return agent
  const { base_url: baseUrl, api_key_env: apiKeyEnv, context_window: _, ...rest } = own
  // Address and key of the manifest are those of its provider.
  const same =
    choice.provider === own.provider
      ? {
          ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
          ...(apiKeyEnv === undefined ? {} : { api_key_env: apiKeyEnv }),
        }
      : {}
  return { ...agent, manifest: { ...manifest, model: { ...rest, ...choice, ...same }, fallback_models: fallbacks } }
}

function questionOf(messages: readonly Message[]): Question {
  const asked = messages.filter(({ role }) => role === 'user')
  const last = asked.at(-1)
  let text = ''
  let images = 0
  for (const block of last?.blocks ?? [])
    if (block.type === 'text') text += `${block.text}\n`
    else if (block.type === 'image') images++
  return { text: text.trim(), images, earlier: Math.max(0, asked.length - 1) }
}
