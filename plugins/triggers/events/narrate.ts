import type { Agents } from '../../agents/contract.ts'
import type { Turns } from '../../chat/contract.ts'
import type { PublishedEvents } from '../../events/contract.ts'
import { isLabel } from '../../sessions/contract.ts'
import type { Label } from '../../sessions/contract.ts'
import type { Tasks } from '../../tasks/contract.ts'
import type { Narrative, TriggerEvent } from './event.ts'

export interface NarratorDeps {
  readonly agents: Pick<Agents, 'find'>
  readonly turns: Pick<Turns, 'find'>
  readonly published: () => Pick<PublishedEvents, 'find'> | undefined
  readonly tasks: () => Pick<Tasks, 'find'> | undefined
  readonly maxChars: number
}

/** An agent wrote it, from unknown sources. */
const OUTSIDE: readonly Label[] = ['UntrustedAgent', 'ExternalNetwork']
/** Nothing in them was chosen by an agent or by somebody outside. */
const OWN_KINDS: ReadonlySet<string> = new Set(['daemon_started', 'daemon_stopped', 'backup_created', 'backup_deleted'])

/** The event as a sentence for a prompt, with what it is about where the entry of the trail does not say it. */
export async function narrate(deps: NarratorDeps, event: TriggerEvent): Promise<Narrative> {
  const { text, labels } = await describe(deps, event)
  return { text: shorten(text, deps.maxChars), labels }
}

async function describe(deps: NarratorDeps, event: TriggerEvent): Promise<Narrative> {
  const { turnId, publishedId, sentence } = event
  if (event.kind === 'message_completed' && turnId !== undefined) {
    const [turn, agent] = await Promise.all([deps.turns.find(turnId), deps.agents.find(event.agentId)])
    const name = agent ? `'${agent.name}' (id: ${agent.id})` : `(id: ${event.agentId})`
    return { text: `Agent ${name} answered: ${turn?.text ?? ''}`, labels: OUTSIDE }
  }
  if (publishedId !== undefined) {
    const found = await deps.published()?.find(publishedId)
    if (!found) return { text: sentence, labels: OUTSIDE }
    const payload = found.payload === null ? '' : `: ${JSON.stringify(found.payload)}`
    return {
      text: `${sentence}${payload}`,
      labels: [...new Set<Label>([...found.labels.filter(isLabel), 'UntrustedAgent'])],
    }
  }
  if (event.taskId !== undefined) {
    const task = await deps.tasks()?.find(event.taskId)
    const labels = task === undefined ? OUTSIDE : task.labels.filter(isLabel)
    return { text: task?.description ? `${sentence}: ${task.description}` : sentence, labels }
  }
  if (OWN_KINDS.has(event.kind)) return { text: sentence, labels: [] }
  // Names and keys are chosen by whoever made the agent or the key, which an agent may have been.
  return { text: sentence, labels: event.origin === undefined ? [] : OUTSIDE }
}

function shorten(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).toWellFormed()}… (${text.length} characters)`
}
