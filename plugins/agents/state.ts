import { Refusal } from 'svc/sdk'
import type { AgentState } from './contract.ts'

/** Created → Initializing → Running ⇄ Paused → Stopped; what is stopped is initialised again when it starts. */
const moves: Readonly<Record<AgentState, readonly AgentState[]>> = {
  Created: ['Initializing'],
  Initializing: ['Running', 'Stopped'],
  Running: ['Paused', 'Stopped'],
  Paused: ['Running', 'Stopped'],
  Stopped: ['Initializing'],
}

/** What an operator may request: the state it starts from, and the states it passes through. */
const commands = {
  suspend: { from: ['Running'], through: ['Paused'] },
  resume: { from: ['Paused'], through: ['Running'] },
  start: { from: ['Stopped', 'Created'], through: ['Initializing', 'Running'] },
  stop: { from: ['Running', 'Paused', 'Initializing'], through: ['Stopped'] },
} as const satisfies Record<string, { from: readonly AgentState[]; through: readonly AgentState[] }>
export type Command = keyof typeof commands

/**
 * The states to go through, none when the agent is where the command leads. Throws `conflict` when the move is not
 * allowed.
 */
export function path(name: string, state: AgentState, command: Command): readonly AgentState[] {
  const { from, through } = commands[command]
  if (through.at(-1) === state) return []
  const starts: readonly AgentState[] = from
  if (!starts.includes(state)) {
    const allowed = Object.entries(commands)
      .filter(([, { from: states }]) => (states as readonly AgentState[]).includes(state))
      .map(([known]) => known)
    throw new Refusal(
      'conflict',
      `agent "${name}" is ${state}: ${command} is not possible, ${allowed.join(' and ') || 'nothing'} is`,
      { details: { state, command, allowed } },
    )
  }
  for (let at = state, index = 0; index < through.length; index++) {
    const next = through[index] ?? at
    if (!moves[at].includes(next)) throw new Error(`there is no transition from ${at} to ${next}`)
    at = next
  }
  return through
}
