import * as v from 'valibot'
import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from './contract.ts'
import { Modes, Permissions, States } from './schema.ts'
import type { AgentService } from './service.ts'
import type { Command } from './state.ts'

const ModeName = v.picklist([...Modes, ...Permissions])
const ModeChanged = v.object({ status: v.literal('updated'), mode: ModeName, agent_id: v.string() })
const Moved = v.object({ status: v.string(), agent_id: v.string(), state: v.picklist(States) })

/** The operating mode, and the moves between the states of an agent. */
export function modeRoutes(agents: AgentService): readonly AnyRoute[] {
  return [
    modeRoute(agents),
    moveRoute(
      agents,
      'PUT',
      'suspend',
      'suspended',
      'Pause an agent',
      'Running to Paused: the running turn ends normally; waiting and new messages are refused until it is resumed.',
    ),
    moveRoute(agents, 'PUT', 'resume', 'running', 'Resume an agent', 'Paused to Running.'),
    moveRoute(
      agents,
      'PUT',
      'stop',
      'stopped',
      'Stop an agent',
      'Running or Paused to Stopped: its turn is cancelled. POST only cancels and leaves the agent running.',
    ),
    moveRoute(agents, 'PUT', 'start', 'started', 'Start an agent', 'Stopped to Running.'),
    moveRoute(agents, 'POST', 'start', 'started', 'Start an agent (alternate listing)', 'Stopped to Running.'),
  ]
}

function modeRoute(agents: AgentService): AnyRoute {
  return defineRoute({
    method: 'PUT',
    path: '/api/agents/:id/mode',
    summary: 'Set the operating mode of an agent',
    description:
      '`Stable` pins the model and the skills of this moment, `Normal` lets both go again. `observe`, `assist` ' +
      'and `full` say which tools it may use: none, those that only read, all it is granted.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: AgentParams,
    body: v.object({ mode: ModeName }),
    returns: ModeChanged,
    errors: ['agent_not_found'],
    example: { body: { mode: 'Stable' } },
    async handle({ params, body: { mode: requested } }) {
      const agent =
        requested === 'Normal' || requested === 'Stable'
          ? await agents.setMode(params.id, requested)
          : await agents.setPermission(params.id, requested)
      return { status: 'updated' as const, mode: requested, agent_id: agent.id }
    },
  })
}

function moveRoute(
  agents: AgentService,
  method: 'PUT' | 'POST',
  command: Command,
  status: string,
  summary: string,
  description: string,
): AnyRoute {
  return defineRoute({
    method,
    path: `/api/agents/:id/${command}`,
    summary,
    description: `${description} Repeating it changes nothing; a transition that the state does not allow is 409.`,
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: AgentParams,
    returns: Moved,
    errors: ['agent_not_found', 'conflict'],
    async handle({ params }) {
      const { agent } = await agents.command(params.id, command)
      return { status, agent_id: agent.id, state: agent.state }
    },
  })
}
