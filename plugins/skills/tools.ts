import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool, Hooks, Tools } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { SkillCatalog } from './catalog.ts'

export const DESCRIBE = 'skill_describe'
/** More than a tool of a skill may take. */
const EXECUTE_SECS = 140

export interface SkillToolsDeps {
  readonly catalog: () => Promise<SkillCatalog>
  readonly agents: Agents
  readonly hooks: Hooks
  readonly tools: Tools
  readonly readFileBytes: number
}
const skillName = v.pipe(v.string(), v.minLength(1), v.maxLength(64), v.description('As skill_list names it'))

export function skillTools(deps: SkillToolsDeps): readonly AnyTool[] {
  return [listTool(deps), describeTool(deps), readFileTool(deps), executeTool(deps)]
}

function listTool(deps: SkillToolsDeps): AnyTool {
  return defineTool({
    name: 'skill_list',
    risk: 'read',
    description:
      'The skills you have, with what each is for. Answers JSON. With query: those that match all its words.',
    input: v.object({ query: v.optional(v.pipe(v.string(), v.maxLength(256)), '') }),
    run: async ({ query }, { agentId }) => (await import('./tool-calls.ts')).listSkills(deps, agentId, query),
  })
}

function describeTool(deps: SkillToolsDeps): AnyTool {
  return defineTool({
    name: DESCRIBE,
    risk: 'read',
    description: 'Read a skill: its instructions, its files and its tools. Do this before a task that the skill fits.',
    input: v.object({ name: skillName }),
    run: async ({ name }, { agentId }) => (await import('./tool-calls.ts')).describeSkill(deps, agentId, name),
  })
}

function readFileTool(deps: SkillToolsDeps): AnyTool {
  return defineTool({
    name: 'skill_read_file',
    risk: 'read',
    description: 'Read a file of a skill, such as a reference that its instructions name.',
    input: v.object({
      skill: skillName,
      path: v.pipe(v.string(), v.minLength(1), v.maxLength(1024), v.description('Relative to the folder of the skill')),
    }),
    run: async ({ skill, path }, { agentId }) =>
      (await import('./tool-calls.ts')).readFileOf(deps, agentId, skill, path),
  })
}

function executeTool(deps: SkillToolsDeps): AnyTool {
  return defineTool({
    name: 'skill_execute',
    risk: 'write',
    labels: ['ExternalNetwork'],
    refuses: ['Secret', 'Pii'],
    timeoutSecs: EXECUTE_SECS,
    description: 'Call a tool of a skill by the names in skill_describe. Each is also a tool of its own.',
    input: v.object({
      skill: skillName,
      tool: v.pipe(v.string(), v.minLength(1), v.maxLength(128)),
      input: v.optional(v.record(v.string(), v.unknown()), {}),
    }),
    run: async ({ skill, ...asked }, call) => (await import('./tool-calls.ts')).executeTool(deps, skill, asked, call),
  })
}
