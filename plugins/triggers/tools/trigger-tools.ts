import * as v from 'valibot'
import { defineTool, Refusal } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { LazyRuntime } from '../routes.ts'

/** Security facts 1.2: what is written here is a prompt later, and another agent may have written what is read. */
const written = { refuses: ['Secret'] } as const
const read = { labels: ['UntrustedAgent', 'ExternalNetwork'] } as const
const id = v.pipe(v.string(), v.uuid('Expected the id of a trigger'), v.toLowerCase())
const load = async (runtime: LazyRuntime) => {
  const [opened, own, views] = await Promise.all([runtime(), import('./own-triggers.ts'), import('../views.ts')])
  return { opened, ...own, ...views }
}

export function triggerTools(runtime: LazyRuntime, agents: Agents): readonly AnyTool[] {
  return [createTool(runtime, agents), listTool(runtime), deleteTool(runtime), enableTool(runtime)]
}

function createTool(runtime: LazyRuntime, agents: Agents): AnyTool {
  return defineTool({
    ...written,
    name: 'trigger_create',
    risk: 'write',
    effect: 'lasting',
    description:
      'Have yourself asked something whenever something happens. `pattern` is one of {"agent_spawned": ' +
      '{"name_pattern": "scout-*"}}, {"agent_terminated": {}}, {"lifecycle": {}}, {"task_posted": {"assignee_match": ' +
      '"self"}}, {"task_claimed": {}}, {"memory_update": {}}, {"memory_key_pattern": {"key_pattern": "user.*"}}, ' +
      '{"content_match": {"substring": "report.ready"}}, {"system": {}}, {"system_keyword": {"keyword": "started"}}, ' +
      '{"all": {}}. Of other agents you hear that they come and go, tasks, and what they publish. Answers JSON.',
    input: v.strictObject({
      pattern: v.union([v.string(), v.record(v.string(), v.unknown())]),
      prompt_template: v.optional(
        v.pipe(v.string(), v.trim(), v.nonEmpty(), v.maxLength(16_384), v.description('{{event}} is what happened.')),
      ),
      max_fires: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1_000_000))),
      agent: v.optional(v.pipe(v.string(), v.maxLength(256), v.description('Another agent by name, if you may.'))),
      workflow: v.optional(
        v.pipe(v.string(), v.maxLength(256), v.description('A workflow that you may run: it runs instead.')),
      ),
    }),
    async run({ agent, pattern, prompt_template: template, max_fires: maxFires, workflow }, call) {
      const { opened, targetOf, authorOf, toTrigger } = await load(runtime)
      const target = await targetOf(agents, call.agentId, agent)
      const body = {
        agent_id: target,
        pattern,
        ...(template !== undefined && { prompt_template: template }),
        ...(maxFires !== undefined && { max_fires: maxFires }),
        ...(workflow !== undefined && workflow !== '' && { workflow_id: workflow }),
      }
      const author = authorOf(call, target)
      return JSON.stringify(toTrigger(await opened.triggers.create(body, undefined, author)))
    },
  })
}

function listTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    ...read,
    name: 'trigger_list',
    risk: 'read',
    description: 'The triggers that are for you or that you made, with how often they fired. Answers JSON.',
    input: v.object({}),
    async run(_, { agentId }) {
      const { opened, triggersOf, toTrigger } = await load(runtime)
      return JSON.stringify({ triggers: (await triggersOf(opened, agentId)).map(toTrigger) })
    },
  })
}

function deleteTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    name: 'trigger_delete',
    risk: 'write',
    effect: 'lasting',
    description: 'Remove a trigger that you made.',
    input: v.object({ id }),
    async run(input, { agentId }) {
      const { opened, requireOwn } = await load(runtime)
      await requireOwn(opened, input.id, agentId)
      await opened.triggers.remove(input.id)
      return 'Removed.'
    },
  })
}

function enableTool(runtime: LazyRuntime): AnyTool {
  return defineTool({
    name: 'trigger_enable',
    risk: 'write',
    effect: 'lasting',
    description: 'Enable or disable a trigger that you made. What a person disabled stays disabled. Answers JSON.',
    input: v.object({ id, enabled: v.optional(v.boolean(), true) }),
    async run({ id: triggerId, enabled }, { agentId }) {
      const { opened, requireOwn, toTrigger } = await load(runtime)
      const { reason } = await requireOwn(opened, triggerId, agentId)
      if (enabled && reason === 'disabled by hand')
        throw new Refusal('forbidden', 'A person disabled this trigger, and has to enable it again.')
      return JSON.stringify(toTrigger(await opened.triggers.change(triggerId, { enabled }, { agentId })))
    },
  })
}
